// Command manager reconciles PtahSchema, receives the results of operation Pods and answers the API server's admission
// webhooks. Every replica receives and answers; only the leader reconciles.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	settings, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(exitUsage)
	}
	if err := run(ctrl.SetupSignalHandler(), settings, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(exitFailed)
	}
}
