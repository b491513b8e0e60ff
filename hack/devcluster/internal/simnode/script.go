package simnode

import (
	"strconv"
	"strings"
	"time"
)

// ScriptAnnotation on a pod replaces the script in its first container's INITIAL_PROMPT.
const ScriptAnnotation = "simnode.ambient-code.io/script"

// ManualAnnotation on a pod or a namespace, with value "true", leaves the pod alone.
const ManualAnnotation = "simnode.ambient-code.io/manual"

const scriptVariable = "INITIAL_PROMPT"

// Ending is how a container ends by itself.
type Ending string

// The endings. A container without one runs until it is stopped.
const (
	EndsNever   Ending = ""
	EndsExit    Ending = "exit"
	EndsOOM     Ending = "oom"
	EndsEvicted Ending = "evict"
)

const (
	exitKilled     = 137 // 128 + SIGKILL
	exitSegfault   = 139 // 128 + SIGSEGV
	exitTerminated = 143 // 128 + SIGTERM
)

// Script says what a container does.
type Script struct {
	Ending        Ending
	ExitCode      int32
	Sleep         time.Duration
	ReadyAfter    time.Duration
	NeverReady    bool
	IgnoreSIGTERM bool
}

// ParseScript reads directives from text; what is not a directive is a prompt's ordinary prose. The
// first ending counts, sleeps add up.
func ParseScript(text string) Script {
	var script Script
	ended := false
	end := func(ending Ending, code int32) {
		if !ended {
			script.Ending, script.ExitCode, ended = ending, code, true
		}
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1:
			script.word(words[0], end)
		case len(words) == 2 && words[0] == "exit":
			if code, err := strconv.ParseUint(words[1], 10, 8); err == nil {
				end(EndsExit, int32(code))
			}
		case len(words) == 2 && words[0] == "sleep":
			if d, ok := parseDuration(words[1]); ok && !ended {
				script.Sleep += d
			}
		case len(words) == 2 && words[0] == "ready-after":
			if d, ok := parseDuration(words[1]); ok {
				script.ReadyAfter = d
			}
		}
	}
	return script
}

func (s *Script) word(word string, end func(Ending, int32)) {
	switch word {
	case "hang":
		end(EndsNever, 0)
	case "crash":
		end(EndsExit, exitSegfault)
	case "oom":
		end(EndsOOM, exitKilled)
	case "evict":
		end(EndsEvicted, exitKilled)
	case "ignore-sigterm":
		s.IgnoreSIGTERM = true
	case "never-ready":
		s.NeverReady = true
	}
}

func parseDuration(text string) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}
