// Package command is the command line of kubectl-ptah. It reads and never writes to the cluster, and it prints nothing
// of a plan on its standard output before all of the plan was verified.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/planview"
	"ptah.run/ptah/operator/schemaview"
)

// Exit codes.
const (
	ExitPrinted = 0
	ExitFailed  = 1 // something could not be read, or did not hold
	ExitUsage   = 2
	ExitNothing = 3 // there is no such schema or plan
)

// defaultTimeout bounds everything that one command asks the API server.
const defaultTimeout = 30 * time.Second

// Connection is how a person says which cluster and namespace are meant.
type Connection struct {
	Kubeconfig string
	Context    string
	Namespace  string
}

// Connect returns a reader and the namespace that is meant.
type Connect func(Connection) (reader client.Reader, namespace string, err error)

// Streams are the standard output and error.
type Streams struct {
	Out io.Writer
	Err io.Writer
}

// usageError is what a person typed wrong.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// Run executes one command line and returns the exit code.
func Run(ctx context.Context, arguments []string, streams Streams, version string, connect Connect) int {
	root := newRoot(streams, version, connect)
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	switch { // where nobody can be told, the exit code still says it
	case err == nil:
		return ExitPrinted
	case errors.As(err, new(usageError)):
		_, _ = fmt.Fprintf(streams.Err, "kubectl-ptah: %v; see kubectl ptah --help\n", err)
		return ExitUsage
	case errors.Is(err, planview.ErrNothing), errors.Is(err, schemaview.ErrNothing):
		_, _ = fmt.Fprintf(streams.Err, "kubectl-ptah: %v\n", err)
		return ExitNothing
	}
	_, _ = fmt.Fprintf(streams.Err, "kubectl-ptah: %v\n", err)
	return ExitFailed
}

func newRoot(streams Streams, version string, connect Connect) *cobra.Command {
	root := &cobra.Command{
		Use:               "kubectl-ptah",
		Short:             "Read what ptah-operator knows of a PtahSchema, and its plans",
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl ptah"},
		Version:           version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return usageError{fmt.Errorf("%q is not a command", arguments[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newPlan(streams, connect), newSchema(streams, connect))
	return root
}

// cluster is the flags that every command has.
type cluster struct {
	connection Connection
	timeout    time.Duration
}

func (c *cluster) add(set *pflag.FlagSet) {
	set.StringVarP(&c.connection.Namespace, "namespace", "n", "", "namespace; the kubeconfig context's by default")
	set.StringVar(&c.connection.Kubeconfig, "kubeconfig", "", "path of the kubeconfig file")
	set.StringVar(&c.connection.Context, "context", "", "kubeconfig context")
	set.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long the API server may take in all")
}

// open connects; the context that it returns ends after the timeout.
func (c *cluster) open(ctx context.Context, connect Connect) (bounded context.Context, cancel context.CancelFunc, reader client.Reader, namespace string, err error) {
	reader, namespace, err = connect(c.connection)
	if err != nil {
		return nil, nil, nil, "", fmt.Errorf("connect to the cluster: %w", err)
	}
	bounded, cancel = context.WithTimeout(ctx, c.timeout)
	return bounded, cancel, reader, namespace, nil
}

// oneName refuses anything but one argument.
func oneName(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if len(arguments) != 1 {
			return usageError{errors.New(command + " takes the name of one PtahSchema")}
		}
		return nil
	}
}

type planFlags struct {
	cluster
	output  string
	current bool
	applied bool
}

func newPlan(streams Streams, connect Connect) *cobra.Command {
	flags := planFlags{}
	cmd := &cobra.Command{
		Use:   "plan NAME",
		Short: "Print the plan of a PtahSchema after verifying every byte of it",
		Example: `  kubectl ptah plan orders -n shop
  kubectl ptah plan orders -n shop -o sql
  kubectl ptah plan orders -n shop -o approval | kubectl create -f -`,
		Args: oneName("plan"),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			return flags.run(cmd.Context(), arguments[0], streams, connect)
		},
	}
	set := cmd.Flags()
	flags.add(set)
	set.StringVarP(&flags.output, "output", "o", "text", "text, sql, json (the stored bytes) or approval (the object that authorises this plan)")
	set.BoolVar(&flags.current, "current", false, "the plan that the schema has now (default)")
	set.BoolVar(&flags.applied, "applied", false, "the plan that was applied last")
	return cmd
}

func (f *planFlags) run(ctx context.Context, name string, streams Streams, connect Connect) (err error) {
	which, write, err := f.choose()
	if err != nil {
		return usageError{err}
	}
	ctx, cancel, reader, namespace, err := f.open(ctx, connect)
	if err != nil {
		return err
	}
	defer cancel()
	view, err := planview.Fetch(ctx, reader, namespace, name, which)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	if f.output == "approval" && !view.Waiting() {
		_, _ = fmt.Fprintf(streams.Err, "kubectl-ptah: warning: PtahSchema %q does not wait for an approval of this plan now, so creating it will be refused\n", name)
	}
	if err := write(view, streams.Out); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

// choose says which plan and which form are meant.
func (f *planFlags) choose() (planview.Which, func(*planview.View, io.Writer) error, error) {
	which := planview.Current
	switch {
	case f.current && f.applied:
		return "", nil, errors.New("--current and --applied exclude each other")
	case f.timeout <= 0:
		return "", nil, errors.New("--timeout must be positive")
	case f.applied:
		which = planview.Applied
	}
	switch f.output {
	case "text":
		return which, (*planview.View).Text, nil
	case "sql":
		return which, (*planview.View).SQL, nil
	case "json":
		return which, (*planview.View).JSON, nil
	case "approval":
		if f.applied {
			return "", nil, errors.New("-o approval does not go with --applied: what was applied needs no approval")
		}
		return which, (*planview.View).Approval, nil
	}
	return "", nil, fmt.Errorf("-o %q is none of text, sql, json and approval", f.output)
}
