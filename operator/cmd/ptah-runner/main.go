// ptah-runner runs first in every operation container: it checks what the manager asked for, runs ptah and delivers
// one result document.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ptah.run/ptah/operator/runner"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	program := &runner.Program{
		Environment: os.LookupEnv,
		Executable:  os.Executable,
		Ptah:        runner.PtahPath,
		Log:         os.Stderr,
		Now:         time.Now,
		RetryPause:  time.Second,
	}
	code := program.Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
