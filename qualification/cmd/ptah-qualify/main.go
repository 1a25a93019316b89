// Command ptah-qualify proves that one exact release of the Ptah operator may run in production.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"ptah.run/ptah/qualification/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := command.IOStreams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	err := command.NewRootCommand(streams).ExecuteContext(ctx)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "ptah-qualify: "+err.Error())
	}
	os.Exit(command.ExitCode(err))
}
