// Package ending holds the ways of dying that a program normally avoids, so that
// tests see how the cluster reports them. Neither function returns.
package ending

import (
	"log/slog"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Exit codes a shell or kubelet reports for a process that a signal ended. They
// are used directly where the signal itself does not get through.
const (
	killed   = 128 + int(syscall.SIGKILL)
	segfault = 128 + int(syscall.SIGSEGV)
)

// largestFill is where filling memory stops when nothing limits it, so that a
// script run outside a container does not take its machine along.
const largestFill = 10 << 30

// fillStep is how much memory is taken at a time.
const fillStep = 16 << 20

// Crash dies of a segmentation fault.
//
// A Go program turns faults into a panic and exit code 2, which the contract has
// taken for "a prerequisite is missing". So the kernel's own action is restored
// first. The fault must be a real one: the first process of a container does not
// receive the signal from itself.
func Crash() {
	runtime.LockOSThread()
	var kernelDefault [64]byte // a zeroed sigaction: SIG_DFL, no flags, empty mask
	if _, _, failed := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGSEGV),
		uintptr(unsafe.Pointer(&kernelDefault)), 0, 8, 0, 0); failed == 0 {
		var nowhere *int
		*nowhere = 1
	}
	os.Exit(segfault)
}

// OutOfMemory takes and touches memory until the kernel ends the process, as it
// does in a container with a memory limit. Where there is none it stops after
// 10 GiB and dies as the kernel would have let it.
//
// The memory does not come from the Go runtime: when that gets none, it ends the
// process with exit code 2 instead of being killed.
func OutOfMemory() {
	for filled := 0; filled < largestFill; filled += fillStep {
		block, err := syscall.Mmap(-1, 0, fillStep, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			break
		}
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = 1
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		slog.Error("cannot kill this process", "error", err)
	}
	// Still here: the first process of a container does not get the signal from itself.
	os.Exit(killed)
}
