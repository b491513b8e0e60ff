package build

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Progress tells a person what is being built: on a terminal one line that counts seconds, anywhere
// else a line when a program is begun and one when it is done.
type Progress struct {
	out      io.Writer
	terminal bool
	mu       sync.Mutex
}

// NewProgress writes to out, which is usually standard error.
func NewProgress(out io.Writer) *Progress {
	file, isFile := out.(*os.File)
	return &Progress{out: out, terminal: isFile && term.IsTerminal(int(file.Fd()))}
}

// Say prints one line.
func (p *Progress) Say(line string) { p.print("", line, "\n") }

const eraseLine = "\r\x1b[K"

// print ignores a failure to write: progress that nobody can see is no reason to stop.
func (p *Progress) print(before, line, after string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.out, before+line+after); err != nil {
		p.out = io.Discard
	}
}

// begin announces the n-th of m programs; the function it returns closes its line.
func (p *Progress) begin(name string, n, m int) (done func(error)) {
	began := time.Now()
	line := func(state string) string {
		return fmt.Sprintf("[%d/%d] %-24s %s %4.0f s", n, m, name, state, time.Since(began).Seconds())
	}
	if !p.terminal {
		p.Say(fmt.Sprintf("[%d/%d] %-24s building", n, m, name))
		return func(err error) { p.Say(line(outcome(err))) }
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			p.print(eraseLine, line("building"), "")
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	}()
	return func(err error) {
		close(stop)
		<-stopped
		p.print(eraseLine, line(outcome(err)), "\n")
	}
}

func outcome(err error) string {
	if err != nil {
		return "failed  "
	}
	return "built   "
}
