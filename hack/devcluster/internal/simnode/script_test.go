package simnode

import (
	"testing"
	"time"
)

func TestParseScript(t *testing.T) {
	tests := []struct {
		name, text string
		want       Script
	}{
		{"empty runs until stopped", "", Script{}},
		{"prose is no directive", "Please exit the building.\nexit now\ncrash the party\nsleep well\nexit 1 2", Script{}},
		{"exit", "exit 0", Script{Ending: EndsExit}},
		{"exit with code after sleeps", "sleep 1s\n  sleep 500ms\nexit 3", Script{Ending: EndsExit, ExitCode: 3, Sleep: 1500 * time.Millisecond}},
		{"bare number is seconds", "sleep 2\nexit 0", Script{Ending: EndsExit, Sleep: 2 * time.Second}},
		{"exit code out of range", "exit 256\nexit -1", Script{}},
		{"negative sleep", "sleep -1s\nexit 0", Script{Ending: EndsExit}},
		{"crash", "crash", Script{Ending: EndsExit, ExitCode: 139}},
		{"oom", "oom", Script{Ending: EndsOOM, ExitCode: 137}},
		{"evict", "evict", Script{Ending: EndsEvicted, ExitCode: 137}},
		{"first ending counts", "hang\nexit 1\nsleep 3s", Script{}},
		{"readiness and stop", "ready-after 2s\nnever-ready\nignore-sigterm", Script{ReadyAfter: 2 * time.Second, NeverReady: true, IgnoreSIGTERM: true}},
		{"among prose, CRLF", "Fix the bug.\r\nexit 2\r\n", Script{Ending: EndsExit, ExitCode: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := ParseScript(test.text); got != test.want {
				t.Errorf("ParseScript(%q) = %+v, want %+v", test.text, got, test.want)
			}
		})
	}
}
