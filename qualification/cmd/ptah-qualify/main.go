// Command ptah-qualify proves that one exact release of the Ptah operator may run in production.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ptah.run/ptah/qualification/command"
)

func main() {
	// The Kubernetes client complains with a stack trace where it is given no logger; what it has to say comes back as errors.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := command.IOStreams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	err := command.NewRootCommand(streams).ExecuteContext(ctx)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "ptah-qualify: "+err.Error())
	}
	stop()
	os.Exit(command.ExitCode(err))
}
