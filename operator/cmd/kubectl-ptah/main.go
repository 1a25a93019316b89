// kubectl-ptah is a kubectl plugin that shows a person exactly what an approval would authorise.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"ptah.run/ptah/operator/planview/command"
)

// version is set by the linker in a release.
var version = "0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := command.Streams{Out: os.Stdout, Err: os.Stderr}
	code := command.Run(ctx, os.Args[1:], streams, version, command.ConnectWith("kubectl-ptah/"+version))
	stop()
	os.Exit(code)
}
