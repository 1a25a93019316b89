package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/record"
)

// CreateSignedRecord judges a run, renders the reports and signs a record that binds all of it. It returns the bytes
// of the record file. The key is a PEM private key.
func CreateSignedRecord(ctx context.Context, d *dossier.Dossier, key []byte, now time.Time, version string) ([]byte, error) {
	signer, err := record.LoadSigner(key)
	if err != nil {
		return nil, Exit(ExitUsage, err)
	}
	r, err := record.Create(d, record.Options{Time: now, Version: version})
	if err != nil {
		return nil, Exit(ExitNotEstablished, err)
	}
	if err := r.Sign(ctx, signer); err != nil {
		return nil, Exit(ExitHarnessFailed, err)
	}
	data, err := r.Encode()
	return data, Exit(ExitHarnessFailed, err)
}

// EnsureKey creates an ed25519 key pair in dir as qualification.key and qualification.pub unless both are there
// already, and returns their paths. A half of a pair is refused.
func EnsureKey(dir string) (private, public string, err error) {
	private, public = filepath.Join(dir, privateName), filepath.Join(dir, publicName)
	_, noPrivate := os.Stat(private)
	_, noPublic := os.Stat(public)
	switch {
	case noPrivate == nil && noPublic == nil:
		return private, public, nil
	case noPrivate == nil || noPublic == nil:
		return "", "", Exit(ExitUsage, fmt.Errorf("%s holds one half of a key pair, remove it or bring the other", dir))
	}
	return private, public, generateKey(dir, record.Ed25519)
}

const (
	privateName = "qualification.key"
	publicName  = "qualification.pub"
)

func generateKey(dir, algorithm string) error {
	private, public, err := record.GenerateKey(algorithm)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	for _, name := range []string{privateName, publicName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return Exit(ExitUsage, fmt.Errorf("%s exists already, a key is never overwritten; name another folder", filepath.Join(dir, name)))
		}
	}
	if err := writeOutputMode(filepath.Join(dir, privateName), private, 0o600); err != nil {
		return err
	}
	return writeOutput(filepath.Join(dir, publicName), public)
}

// NewRecordCommand returns `ptah-qualify record` with its subcommands.
func NewRecordCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{Use: "record", Short: "Create, sign, verify and read qualification records"}
	key := &cobra.Command{Use: "key", Short: "Keys that sign records"}
	key.AddCommand(newRecordKeyGenerate(streams))
	command.AddCommand(newRecordCreate(streams), newRecordSign(streams), newRecordVerify(streams), newRecordInspect(streams), key)
	return command
}

func newRecordKeyGenerate(streams IOStreams) *cobra.Command {
	var output, algorithm string
	command := &cobra.Command{
		Use:   "generate --output DIR",
		Short: "Write a new key pair as " + privateName + " and " + publicName,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := generateKey(output, algorithm); err != nil {
				return err
			}
			_, err := fmt.Fprintf(streams.Out, "%s (keep it secret)\n%s\n", filepath.Join(output, privateName), filepath.Join(output, publicName))
			return err
		},
	}
	command.Flags().StringVar(&output, "output", "", "existing folder to write the pair into")
	command.Flags().StringVar(&algorithm, "algorithm", record.Ed25519, "ed25519 or ecdsa (P-256)")
	mustRequire(command, "output")
	return command
}

func newRecordCreate(streams IOStreams) *cobra.Command {
	var run, output string
	command := &cobra.Command{
		Use:   "create --run DIR --output FILE",
		Short: "State the judgement of a run as an unsigned record",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			d, err := LoadRun(run)
			if err != nil {
				return err
			}
			r, err := record.Create(d, record.Options{Time: time.Now(), Version: d.Harness.Version})
			if err != nil {
				return Exit(ExitNotEstablished, err)
			}
			return writeRecord(streams.Out, r, output)
		},
	}
	command.Flags().StringVar(&run, "run", "", "directory of the run")
	command.Flags().StringVar(&output, "output", record.FileName, "file to write")
	mustRequire(command, "run")
	return command
}

func writeRecord(out io.Writer, r *record.Record, path string) error {
	data, err := r.Encode()
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	if err := writeOutput(path, data); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, path)
	return err
}

func newRecordSign(streams IOStreams) *cobra.Command {
	var path, key, output string
	command := &cobra.Command{
		Use:   "sign --record FILE --key KEY",
		Short: "Sign every statement of a record with a key file",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			r, err := readRecord(path)
			if err != nil {
				return err
			}
			pem, err := readInput(key)
			if err != nil {
				return err
			}
			signer, err := record.LoadSigner(pem)
			if err != nil {
				return Exit(ExitUsage, fmt.Errorf("%s: %w", key, err))
			}
			if err := r.Sign(command.Context(), signer); err != nil {
				return Exit(ExitUsage, err)
			}
			if output == "" {
				output = path
			}
			return writeRecord(streams.Out, r, output)
		},
	}
	command.Flags().StringVar(&path, "record", record.FileName, "record to sign")
	command.Flags().StringVar(&key, "key", "", "PEM private key (PKCS #8, ed25519 or ECDSA P-256)")
	command.Flags().StringVar(&output, "output", "", "file to write instead of the record itself")
	mustRequire(command, "key")
	return command
}

func readRecord(path string) (*record.Record, error) {
	data, err := readInput(path)
	if err != nil {
		return nil, err
	}
	r, err := record.Decode(data)
	if err != nil {
		return nil, Exit(ExitUsage, fmt.Errorf("%s: %w", path, err))
	}
	return r, nil
}

type verifyFlags struct {
	record, run, profile, reports string
	keys                          []string
	acceptance                    bool
}

func newRecordVerify(streams IOStreams) *cobra.Command {
	var flags verifyFlags
	command := &cobra.Command{
		Use:   "verify --record FILE --key PUB [--run DIR] [--profile FILE] [--reports DIR]",
		Short: "Check a record offline: signatures, consistency, evidence, profile and reports",
		Long: `Verify checks the signatures of a record with the given public keys and that the record does not contradict
itself. With --run it hashes every byte of the evidence and judges it again; with --profile and --reports it checks
that these are the files the record binds. It uses no network.

It exits 6 where anything does not fit, and else with the exit code of the verdict that the record states: a record
that is genuine and did not pass never exits 0.`,
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
	command.Flags().StringVar(&flags.profile, "profile", "", "profile that the record must have been judged under")
	command.Flags().StringVar(&flags.reports, "reports", "", "directory of the rendered reports")
	command.Flags().BoolVar(&flags.acceptance, "acceptance", false, "demand that the record accepts the release")
	mustRequire(command, "key")
	return command
}

func verifyRecord(ctx context.Context, flags verifyFlags) (*record.Verified, error) {
	data, err := readInput(flags.record)
	if err != nil {
		return nil, err
	}
	checks := record.Checks{Acceptance: flags.acceptance, Run: flags.run, Reports: flags.reports}
	for _, path := range flags.keys {
		pem, err := readInput(path)
		if err != nil {
			return nil, err
		}
		key, err := record.LoadVerifier(pem)
		if err != nil {
			return nil, Exit(ExitUsage, fmt.Errorf("%s: %w", path, err))
		}
		checks.Keys = append(checks.Keys, key)
	}
	for _, dir := range []string{flags.run, flags.reports} {
		if dir == "" {
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, Exit(ExitUsage, fmt.Errorf("there is no folder %s, check the path", dir))
		}
	}
	if flags.profile != "" {
		if checks.Profile, err = readInput(flags.profile); err != nil {
			return nil, err
		}
	}
	verified, err := record.Verify(ctx, data, checks)
	var refusal *record.Refusal
	if errors.As(err, &refusal) {
		return nil, Exit(ExitVerificationFailed, fmt.Errorf("%s does not verify: %w", flags.record, err))
	}
	return verified, err
}

func printVerified(out io.Writer, verified *record.Verified) {
	summary := verified.Summary
	fmt.Fprintf(out, "genuine: signed by %s\n", strings.Join(verified.Keys, ", "))
	for _, checked := range verified.Checked {
		fmt.Fprintf(out, "checked: %s\n", checked)
	}
	printClaims(out, verified)
	fmt.Fprintf(out, "%s\n", summary.Notice)
}

func printClaims(out io.Writer, verified *record.Verified) {
	summary := verified.Summary
	fmt.Fprintf(out, "verdict: %s under %s, revision %s (%s), at %s\n", summary.Verdict, summary.Policy.Name, summary.Policy.Annotations["revision"], summary.Purpose, summary.TimeVerified.Format(time.RFC3339))
	for _, subject := range verified.Subject {
		fmt.Fprintf(out, "release: %s sha256:%s\n", subject.Name, subject.Digest["sha256"])
	}
	for _, cell := range verified.Judgements() {
		fmt.Fprintf(out, "cell: %s %s\n", cell.Cell.Key, cell.Verdict)
	}
	for _, requirement := range summary.Requirements {
		fmt.Fprintf(out, "requirement: %s %s\n", requirement.Requirement, requirement.Verdict)
	}
	fmt.Fprintf(out, "evidence: %s sha256:%s\n", summary.Evidence.Name, summary.Evidence.Digest["sha256"])
}

func newRecordInspect(streams IOStreams) *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "inspect --record FILE",
		Short: "Print what a record claims, without checking it",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			data, err := readInput(path)
			if err != nil {
				return err
			}
			claims, err := record.Inspect(data)
			if err != nil {
				return Exit(ExitUsage, fmt.Errorf("%s: %w", path, err))
			}
			signed := "not signed"
			if len(claims.Keys) > 0 {
				signed = "claims to be signed by " + strings.Join(claims.Keys, ", ")
			}
			fmt.Fprintf(streams.Out, "unchecked: %s, use `record verify` to check it\n", signed)
			printClaims(streams.Out, claims)
			_, err = fmt.Fprintln(streams.Out, claims.Summary.Notice)
			return err
		},
	}
	command.Flags().StringVar(&path, "record", record.FileName, "record to print")
	return command
}
