package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/operator/artifact"
	"ptah.run/ptah/operator/plan/report"
)

func (a *app) schemaPull() *cobra.Command {
	var f registryFlags
	var output string
	cmd := &cobra.Command{
		Use:     "pull REFERENCE@DIGEST --output DIR",
		Short:   "Write the files of a pinned schema artifact into a folder",
		Example: "  ptah schema pull oci://registry.example/shop/schema@sha256:... --output ./schema",
		Args:    oneReference,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return usage("--output is missing: the folder to write into")
			}
			out := report.Pull{ContractVersion: report.ContractVersion, Outcome: report.OutcomeFound, Reference: args[0]}
			err := a.pull(cmd.Context(), args[0], output, &f, &out)
			if err != nil {
				out.Problem = artifact.Problem(err)
				out.Outcome = outcomeOf(out.Problem)
			}
			return a.write(out.Outcome, out, out.Problem, artifact.Detail(err), func(b *strings.Builder) {
				fmt.Fprintf(b, "%s: %d %s, %d bytes in %s\n", out.Digest, out.Files, plural(out.Files, "file"), out.Bytes, output)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&output, "output", "", "folder to write into; empty or new")
	return cmd
}

func (a *app) pull(ctx context.Context, text, output string, f *registryFlags, out *report.Pull) error {
	client, ref, err := a.with(text, f)
	if err != nil {
		return err
	}
	info, files, err := client.Fetch(ctx, ref)
	if err != nil {
		return err
	}
	if err := artifact.WriteFiles(output, info.Digest, files); err != nil {
		return err
	}
	out.Digest, out.Files = info.Digest, len(files)
	for _, file := range files {
		out.Bytes += int64(len(file.Data))
	}
	return nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
