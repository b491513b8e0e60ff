package proc

import (
	"os/exec"
	"runtime"
	"sync"
)

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan error
}

// spawner hands commands to the one thread that starts them. The kernel sends the parent death
// signal when the thread that forked ends, so that thread must never end before the program does.
var spawner = sync.OnceValue(func() chan<- spawnRequest {
	requests := make(chan spawnRequest)
	go func() {
		runtime.LockOSThread()
		for request := range requests {
			request.done <- request.cmd.Start()
		}
	}()
	return requests
})

func spawn(cmd *exec.Cmd) error {
	request := spawnRequest{cmd: cmd, done: make(chan error, 1)}
	spawner() <- request
	return <-request.done
}
