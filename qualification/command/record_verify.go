package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/record"
)

type verifyFlags struct {
	record, run, profile, reports, matrices, manifest, repository string

	keys       []string
	keyless    keylessFlags
	acceptance bool
}

func newRecordVerify(streams IOStreams) *cobra.Command {
	var flags verifyFlags
	command := &cobra.Command{
		Use:   "verify --record FILE {--key PUB... | --sigstore-bundle FILE ...} [--run DIR] [--profile FILE [--matrices DIR]] [--reports DIR] [--manifest FILE] [--repository DIR]",
		Short: "Check a record offline: signatures, consistency, evidence, profile, release and reports",
		Long: `Verify checks the signatures of a record with the given public keys and that the record does not contradict
itself. A record that nobody keeps a key for is signed as a whole instead, by an identity that Sigstore vouched for:
--sigstore-bundle, with the trusted root and the signer to believe. Each further flag checks more, and no flag uses
the network:

  --run         hashes every byte of the evidence and judges it again
  --profile     demands that this is the profile that was judged under, with its exclusions
  --matrices    with --profile: demands exactly the cells that the profile covers in these matrices
  --reports     demands that these are the files the record binds
  --manifest    demands that this is the release manifest the record binds
  --repository  asks git again how the commit of the harness relates to that of the release
  --acceptance  demands that the record accepts the release

It exits 6 where anything does not fit, and else with the exit code of the verdict that the record states: a record
that is genuine and did not pass never exits 0.`,
		Example: `  ptah-qualify record verify --record reports/quickstart/qualification-record.json --key reports/quickstart/qualification.pub
  ptah-qualify record verify --record record.json --key release.pub --profile production --matrices matrices --acceptance
  ptah-qualify record verify --record record.json --sigstore-bundle record.sigstore.json --trusted-root trusted_root.json \
    --certificate-identity https://github.com/OWNER/REPOSITORY/.github/workflows/qualification.yaml@refs/tags/v0.2.4 \
    --certificate-issuer https://token.actions.githubusercontent.com`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			verified, err := verifyRecord(command.Context(), flags)
			if err != nil {
				return err
			}
			printVerified(streams.Out, verified)
			return verdictError(verified.Summary.Verdict)
		},
	}
	command.Flags().StringVar(&flags.record, "record", record.FileName, "record to verify")
	command.Flags().StringArrayVar(&flags.keys, "key", nil, "PEM public key; repeat to admit several")
	command.Flags().StringVar(&flags.run, "run", "", "directory of the run, to check the evidence and judge it again")
	command.Flags().StringVar(&flags.profile, "profile", "", "profile that the record must have been judged under, a file or a name in the folder profiles")
	command.Flags().StringVar(&flags.matrices, "matrices", "", "folder with the matrices, to demand exactly the declared cells; needs --profile")
	command.Flags().StringVar(&flags.reports, "reports", "", "directory of the rendered reports")
	command.Flags().StringVar(&flags.manifest, "manifest", "", "release manifest that the record must bind")
	command.Flags().StringVar(&flags.repository, "repository", "", "git repository, to check how harness and release relate")
	command.Flags().BoolVar(&flags.acceptance, "acceptance", false, "demand that the record accepts the release")
	flags.keyless.register(command)
	command.MarkFlagsOneRequired("key", "sigstore-bundle")
	return command
}

// verifyRecord does what the flags ask for. Errors carry their exit code.
func verifyRecord(ctx context.Context, flags verifyFlags) (*record.Verified, error) {
	data, err := readInput(flags.record)
	if err != nil {
		return nil, err
	}
	checks, err := flags.checks(ctx)
	if err != nil {
		return nil, err
	}
	verified, err := record.Verify(ctx, data, checks)
	var refusal *record.Refusal
	if errors.As(err, &refusal) {
		return nil, Exit(ExitVerificationFailed, fmt.Errorf("%s does not verify: %w", flags.record, err))
	}
	return verified, err
}

func (f verifyFlags) checks(ctx context.Context) (checks record.Checks, err error) {
	checks.Acceptance = f.acceptance
	if checks.Keys, err = readVerifiers(f.keys); err != nil {
		return checks, err
	}
	if checks.Whole, err = f.keyless.check(); err != nil {
		return checks, err
	}
	for _, dir := range []string{f.run, f.reports, f.matrices, f.repository} {
		if dir == "" {
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return checks, Exit(ExitUsage, fmt.Errorf("there is no folder %s, check the path", dir))
		}
	}
	if f.run != "" {
		checks.Evidence = evidenceIn(f.run)
	}
	if f.reports != "" {
		checks.Reports = func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(f.reports, name)) }
	}
	if f.profile != "" {
		if checks.Profile, err = readInput(profilePath(f.profile)); err != nil {
			return checks, err
		}
	}
	switch {
	case f.matrices != "" && f.profile == "":
		return checks, Exit(ExitUsage, errors.New("--matrices says nothing without --profile, which names the depth to cover"))
	case f.matrices != "":
		checks.Matrices = func(name string) (*matrix.Matrix, error) {
			m, _, err := LoadMatrix(filepath.Join(f.matrices, name+".yaml"))
			return m, err
		}
	}
	if f.manifest != "" {
		if checks.Manifest, err = readInput(f.manifest); err != nil {
			return checks, err
		}
	}
	if f.repository != "" {
		checks.Ancestry = func(release, harness string) (*carryover.Ancestry, error) {
			return relateIn(ctx, f.repository, release, harness, false)
		}
	}
	return checks, nil
}

// evidenceIn loads the run in a folder when it is asked for.
func evidenceIn(dir string) func() (*dossier.Dossier, error) {
	return func() (*dossier.Dossier, error) { return dossier.Load(dir) }
}

// profilePath looks a name without a slash or an ending up in the folder profiles.
func profilePath(name string) string {
	if strings.ContainsAny(name, "/\\") || filepath.Ext(name) != "" {
		return name
	}
	return filepath.Join("profiles", name+".yaml")
}

func printVerified(out io.Writer, verified *record.Verified) {
	printf(out, "genuine: signed by %s\n", strings.Join(verified.Keys, ", "))
	for _, checked := range verified.Checked {
		printf(out, "checked: %s\n", checked)
	}
	printClaims(out, verified)
	printf(out, "%s\n", verified.Summary.Notice)
}
