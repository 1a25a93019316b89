//go:build !linux

package cell

import "os/exec"

// runBound runs a process. Only Linux can end it with this one.
func runBound(command *exec.Cmd) error { return command.Run() }
