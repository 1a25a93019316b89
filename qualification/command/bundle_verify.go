package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/bundle"
	"ptah.run/ptah/qualification/record"
)

func newBundleVerify(streams IOStreams) *cobra.Command {
	var keys, identities []string
	var acceptance bool
	command := &cobra.Command{
		Use:   "verify FILE --key PUB [--identity FILE]",
		Short: "Check a bundle offline: every byte, its index and sums, its record, its evidence",
		Long: `Verify reads a bundle and refuses one that is not exactly as it was written: with a missing, altered, additional or
doubled file, a link, a path that leads elsewhere, or bytes that no file accounts for. Then it checks the record in it
as record verify does: the signatures with the given keys, every byte of the evidence, that judging it again gives the
same verdicts, and that the reports are those the record binds. The keys must come from elsewhere: a key that came
with the bundle proves nothing. It uses no network.

It exits 6 where anything does not fit, and else with the exit code of the verdict that the record states.`,
		Example: `  ptah-qualify bundle verify run.tar --key release.pub
  ptah-qualify bundle verify run.tar.age --key release.pub --identity auditor.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			index, verified, err := verifyBundle(command.Context(), args[0], keys, identities, acceptance)
			if err != nil {
				return err
			}
			printf(streams.Out, "bundle: %s, %s, %d files as they were packed\n", index.Name, index.Kind, len(index.Files))
			printVerified(streams.Out, verified)
			for _, limit := range index.Scope.NotShown {
				printf(streams.Out, "not shown: %s\n", limit)
			}
			return verdictError(verified.Summary.Verdict)
		},
		ValidArgsFunction: completeEndings("tar", "age"),
	}
	command.Flags().StringArrayVar(&keys, "key", nil, "PEM public key; repeat to admit several")
	command.Flags().StringArrayVar(&identities, "identity", nil, "age identity file, for an encrypted bundle; repeatable")
	command.Flags().BoolVar(&acceptance, "acceptance", false, "demand that the record accepts the release")
	mustRequire(command, "key")
	mustComplete(command, "identity", completeEndings("txt", "key"))
	return command
}

func verifyBundle(ctx context.Context, path string, keys, identities []string, acceptance bool) (*bundle.Index, *record.Verified, error) {
	if _, err := readVerifiers(keys); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "ptah-bundle-")
	if err != nil {
		return nil, nil, Exit(ExitHarnessFailed, fmt.Errorf("unpack %s: %w", path, err))
	}
	defer func() { _ = os.RemoveAll(dir) }()
	index, err := unpackBundle(path, identities, dir)
	if err != nil {
		return nil, nil, err
	}
	flags := verifyFlags{record: filepath.Join(dir, bundleRecord), run: filepath.Join(dir, bundle.EvidenceFolder), reports: filepath.Join(dir, bundle.ReportsFolder), keys: keys, acceptance: acceptance}
	for what, name := range map[string]string{"record": flags.record, "evidence": flags.run, "reports": flags.reports} {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, Exit(ExitVerificationFailed, fmt.Errorf("%s holds no %s", path, what))
		}
	}
	verified, err := verifyRecord(ctx, flags)
	if err != nil {
		return nil, nil, Exit(ExitCode(err), fmt.Errorf("%s: %w", path, err))
	}
	d, err := LoadRun(flags.run)
	if err != nil {
		return nil, nil, err
	}
	return index, verified, Exit(ExitVerificationFailed, index.Fits(verified, d))
}

// unpackBundle unpacks everything but the restricted files.
func unpackBundle(path string, identities []string, dir string) (*bundle.Index, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Exit(ExitUsage, fmt.Errorf("there is no file %s, check the path", path))
	}
	if err != nil {
		return nil, Exit(ExitUsage, fmt.Errorf("cannot read %s: %w", path, reason(err)))
	}
	defer func() { _ = file.Close() }()
	var contents [][]byte
	for _, identity := range identities {
		data, err := readInput(identity)
		if err != nil {
			return nil, err
		}
		contents = append(contents, data)
	}
	opened, err := bundle.Open(file, contents...)
	if err == nil {
		var index *bundle.Index
		if index, err = bundle.Extract(opened, dir); err == nil {
			return index, nil
		}
	}
	code := ExitHarnessFailed
	if errors.Is(err, bundle.ErrRefused) {
		code = ExitVerificationFailed
	}
	return nil, Exit(code, fmt.Errorf("%s: %w", path, err))
}

func newBundleScan(streams IOStreams) *cobra.Command {
	var secrets []string
	command := &cobra.Command{
		Use:   "scan PATH...",
		Short: "Search files and folders for credentials, as a bundle is searched",
		Long: `Scan searches files, and everything in folders, as bundle public does before it writes. Each finding is one line with
file, place and kind; no credential is ever printed. It exits 3 where anything was found. It writes nothing.`,
		Example: `  ptah-qualify bundle scan reports/quickstart --secret-file lab/registry.password`,
		Args:    cobra.MinimumNArgs(1),

		ValidArgsFunction: completeFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			scanner, err := newScanner(secrets)
			if err != nil {
				return err
			}
			files, found := 0, 0
			for _, root := range args {
				err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
					if err != nil || entry.IsDir() {
						return err
					}
					findings, err := scanFile(scanner, path, entry)
					for _, finding := range findings {
						printLine(streams.Out, finding)
					}
					files, found = files+1, found+len(findings)
					return err
				})
				if err != nil {
					return Exit(ExitUsage, fmt.Errorf("search %s: %w", root, err))
				}
			}
			if found > 0 {
				return Exit(ExitHarnessFailed, fmt.Errorf("%d places in %d files hold credentials or cannot be looked into", found, files))
			}
			_, err = fmt.Fprintf(streams.Out, "no credential in %d files\n", files)
			return err
		},
	}
	command.Flags().StringArrayVar(&secrets, "secret-file", nil, "file with secret values that must be nowhere, one a line, or one PEM private key; repeatable")
	return command
}
