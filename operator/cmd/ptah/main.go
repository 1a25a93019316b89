// Command ptah plans and applies declared database schemas. See package command.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"ptah.run/ptah/operator/executor/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	terminal := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	code := command.Run(ctx, os.Args[1:], command.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		Terminal:  terminal(os.Stdin) && terminal(os.Stderr),
		Colour:    command.Coloured(terminal(os.Stdout), os.Getenv),
		ErrColour: command.Coloured(terminal(os.Stderr), os.Getenv),
	})
	stop()
	os.Exit(code)
}
