package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/operator/schemaview"
)

type schemaFlags struct {
	cluster
	output string
}

func newSchema(streams Streams, connect Connect) *cobra.Command {
	flags := schemaFlags{}
	cmd := &cobra.Command{
		Use:   "schema NAME",
		Short: "Print what is known of a PtahSchema, and what a person should do next",
		Example: `  kubectl ptah schema orders -n shop
  kubectl ptah schema orders -n shop -o json`,
		Args: oneName("schema"),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			return flags.run(cmd.Context(), arguments[0], streams, connect)
		},
	}
	set := cmd.Flags()
	flags.add(set)
	set.StringVarP(&flags.output, "output", "o", "text", "text or json")
	return cmd
}

func (f *schemaFlags) run(ctx context.Context, name string, streams Streams, connect Connect) error {
	var write func(*schemaview.View, io.Writer) error
	switch {
	case f.timeout <= 0:
		return usageError{errors.New("--timeout must be positive")}
	case f.output == "text":
		write = (*schemaview.View).Text
	case f.output == "json":
		write = (*schemaview.View).JSON
	default:
		return usageError{fmt.Errorf("-o %q is none of text and json", f.output)}
	}
	ctx, cancel, reader, namespace, err := f.open(ctx, connect)
	if err != nil {
		return err
	}
	defer cancel()
	view, err := schemaview.Fetch(ctx, reader, namespace, name, time.Now())
	if err != nil {
		return err
	}
	if err := write(view, streams.Out); err != nil {
		return fmt.Errorf("write what is known: %w", err)
	}
	return nil
}
