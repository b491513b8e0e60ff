// Package script reads the small language in which a session's prompt tells the
// reference runner what to do. A prompt is read line by line. A line that is a
// directive is obeyed; any other line is free text, as if meant for a language
// model, and is ignored:
//
//	write FILE TEXT...    append TEXT as a line to FILE in every repository and commit it with message TEXT
//	sleep DURATION        wait, for example 10s or 2m; a bare number is seconds
//	exit CODE             end now with this exit code, 0 to 255
//	fail MESSAGE          print MESSAGE and end now with exit code 1
//	hang                  do nothing more, serve until stopped
//	crash                 die of a segmentation fault
//	oom                   fill memory until the kernel ends the process
//	ignore-sigterm        do not end on SIGTERM
//	ready-after DURATION  answer GET /health with 503 for this long after the start
//	never-ready           answer GET /health with 503 for ever
//
// Directives run in the order written, except for the last three: those are
// settings, hold from the start wherever they stand, and delay nothing. A script
// that reaches its end ends the run with exit code 0.
package script

import (
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Verb is the first word of a directive.
type Verb string

// The verbs that are steps of a script.
const (
	Write Verb = "write"
	Sleep Verb = "sleep"
	Exit  Verb = "exit"
	Fail  Verb = "fail"
	Hang  Verb = "hang"
	Crash Verb = "crash"
	OOM   Verb = "oom"
)

// The verbs that are settings.
const (
	ignoreSIGTERM Verb = "ignore-sigterm"
	readyAfter    Verb = "ready-after"
	neverReady    Verb = "never-ready"
)

// defaultFailure is what "fail" without a message says.
const defaultFailure = "the script says that the run fails"

// Step is one directive to carry out. Which fields count depends on the verb.
type Step struct {
	Verb  Verb
	File  string        // write
	Text  string        // write, fail
	Pause time.Duration // sleep
	Code  int           // exit
}

// Script is a prompt that has been read.
type Script struct {
	Steps []Step

	IgnoreSIGTERM bool
	NeverReady    bool
	ReadyAfter    time.Duration

	// Doubtful holds the numbers of lines, counted from 1, that begin with a
	// verb but are not a whole directive ("sleep well"). They are ignored like
	// other text; whoever wrote the script may want to know.
	Doubtful []int
}

// Parse reads a prompt. There are no errors: what is no directive is text.
func Parse(prompt string) Script {
	var script Script
	for i, line := range strings.Split(prompt, "\n") {
		word, rest := firstWord(strings.TrimSpace(line))
		if known, ok := script.add(Verb(word), rest); known && !ok {
			script.Doubtful = append(script.Doubtful, i+1)
		}
	}
	return script
}

// add takes in one line. It says whether the verb is known, and whether the
// line was a whole directive.
func (s *Script) add(verb Verb, rest string) (known, ok bool) {
	step := Step{Verb: verb}
	switch verb {
	case Write:
		step.File, step.Text = firstWord(rest)
		ok = step.Text != ""
	case Sleep:
		step.Pause, ok = duration(rest)
	case Exit:
		code, err := strconv.ParseUint(rest, 10, 8)
		step.Code, ok = int(code), err == nil
	case Fail:
		step.Text, ok = rest, true
		if rest == "" {
			step.Text = defaultFailure
		}
	case Hang, Crash, OOM:
		ok = rest == ""
	default:
		return s.set(verb, rest)
	}
	if ok {
		s.Steps = append(s.Steps, step)
	}
	return true, ok
}

func (s *Script) set(verb Verb, rest string) (known, ok bool) {
	switch verb {
	case ignoreSIGTERM:
		ok = rest == ""
		s.IgnoreSIGTERM = s.IgnoreSIGTERM || ok
	case neverReady:
		ok = rest == ""
		s.NeverReady = s.NeverReady || ok
	case readyAfter:
		var pause time.Duration
		if pause, ok = duration(rest); ok {
			s.ReadyAfter = pause
		}
	default:
		return false, false
	}
	return true, ok
}

// firstWord splits a line that neither begins nor ends with a space.
func firstWord(line string) (word, rest string) {
	i := strings.IndexFunc(line, unicode.IsSpace)
	if i < 0 {
		return line, ""
	}
	return line[:i], strings.TrimSpace(line[i:])
}

// duration reads a time: a bare number means seconds.
func duration(text string) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	pause, err := time.ParseDuration(text)
	return pause, err == nil && pause >= 0
}
