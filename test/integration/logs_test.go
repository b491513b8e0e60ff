package integration

import (
	"bytes"
	"strings"
	"sync"
)

// logTail keeps the last lines of the operators' logs, for the messages of failed tests.
type logTail struct {
	mu    sync.Mutex
	lines []string
}

const keptLines = 20000

// Write takes one or more lines.
func (l *logTail) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(text) {
		l.lines = append(l.lines, string(bytes.TrimRight(line, "\n")))
	}
	if len(l.lines) > 2*keptLines {
		l.lines = append([]string{}, l.lines[keptLines:]...)
	}
	return len(text), nil
}

// containing returns the lines that contain a text.
func (l *logTail) containing(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
