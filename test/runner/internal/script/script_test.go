package script_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/ambient-code/agentic-operator/test/runner/internal/script"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		prompt string
		want   script.Script
	}{
		"empty":     {"", script.Script{}},
		"free text": {"Please improve the README.\n\nThank you.", script.Script{}},
		"work": {"Greet the world.\nwrite docs/HELLO.md  Hello,  world \r\nsleep\t1m30s\nsleep 2\nexit 7", script.Script{Steps: []script.Step{
			{Verb: script.Write, File: "docs/HELLO.md", Text: "Hello,  world"},
			{Verb: script.Sleep, Pause: 90 * time.Second},
			{Verb: script.Sleep, Pause: 2 * time.Second},
			{Verb: script.Exit, Code: 7},
		}}},
		"ends": {"  hang\ncrash\noom\nfail no luck today\nfail\nexit 0\nexit 255", script.Script{Steps: []script.Step{
			{Verb: script.Hang}, {Verb: script.Crash}, {Verb: script.OOM},
			{Verb: script.Fail, Text: "no luck today"},
			{Verb: script.Fail, Text: "the script says that the run fails"},
			{Verb: script.Exit}, {Verb: script.Exit, Code: 255},
		}}},
		"settings": {"ready-after 2s\nhang\nignore-sigterm\nnever-ready", script.Script{
			Steps:         []script.Step{{Verb: script.Hang}},
			IgnoreSIGTERM: true, NeverReady: true, ReadyAfter: 2 * time.Second,
		}},
		"nearly directives": {
			"sleep well\nsleep\nsleep -5s\nexit now\nexit 256\nexit -1\nwrite FILE\nhang in there\nnever-ready yet\nready-after all\nWrite X y\nsleeping 5s",
			script.Script{Doubtful: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := script.Parse(test.prompt); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}
