package cell

import (
	"os/exec"
	"runtime"
	"syscall"
)

// runBound runs a process that does not outlive this one: a suite that goes on after its harness was killed would write
// into a lab that somebody else uses next. The kernel ends the child with the thread that started it, so that the
// thread is kept until the child is done.
func runBound(command *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command.Run()
}
