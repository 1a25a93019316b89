package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/record"
)

// CreateSignedRecord judges a run, renders the reports and signs a record that binds all of it. It returns the bytes
// of the record file. The key is a PEM private key. What the evidence does not hold, such as the release manifest and
// the ancestry of the harness, comes from the functions of with.
func CreateSignedRecord(ctx context.Context, d *dossier.Dossier, key []byte, now time.Time, version string, with ...func(*record.Options)) ([]byte, error) {
	signer, err := record.LoadSigner(key)
	if err != nil {
		return nil, Exit(ExitUsage, err)
	}
	options := record.Options{Time: now, Version: version}
	for _, set := range with {
		set(&options)
	}
	r, err := record.Create(d, options)
	if err != nil {
		return nil, Exit(ExitNotEstablished, err)
	}
	if err := r.Sign(ctx, signer); err != nil {
		return nil, Exit(ExitHarnessFailed, err)
	}
	data, err := r.Encode()
	return data, Exit(ExitHarnessFailed, err)
}

// NewRecordCommand returns `ptah-qualify record` with its subcommands.
func NewRecordCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "record",
		Short: "Create, sign, verify and read qualification records, and carry claims over",
		Long: `A record states what a run came to: one in-toto statement for each cell and one over all of them, signed with a key
file as DSSE envelopes. It binds the profile, the release manifest, the digests of images and chart, the clusters, the
platforms (native or emulated), the source of the images, the commit of the harness and how that relates to the release.

Keys are ed25519 or ECDSA P-256 in PEM files. A record may also be signed without one, as a file, by a client of
Sigstore ("cosign sign-blob --bundle"); record verify checks that too, and uses no network for either.`,
		Example: `  ptah-qualify record create --run RUN
  ptah-qualify record sign --key qualification.key
  ptah-qualify record verify --key qualification.pub --run RUN`,
	}
	key := &cobra.Command{
		Use: "key", Short: "Keys that sign records",
		Long: `A record is signed with a private key in a PEM file and verified with its public half. Whoever verifies must have the
public key from somewhere else than the record.`,
		Example: "  ptah-qualify record key generate --output keys",
	}
	key.AddCommand(newRecordKeyGenerate(streams))
	command.AddCommand(newRecordCreate(streams), newRecordSign(streams), newRecordVerify(streams), newRecordInspect(streams),
		newRecordReview(streams), newRecordImpact(streams), key)
	return command
}

type createFlags struct {
	run, output, manifest, repository, releaseCommit string
}

func newRecordCreate(streams IOStreams) *cobra.Command {
	var flags createFlags
	command := &cobra.Command{
		Use:   "create --run DIR --output FILE",
		Short: "State the judgement of a run as an unsigned record",
		Long: `Create judges a closed run and states the result, unsigned. --manifest binds the release manifest, which must name every
digest that was tested. --repository asks git whether the commit of the harness descends from that of the release and
changes nothing that support/claims.yaml lists as shipped; without both, a record is never an acceptance.`,
		Example: `  ptah-qualify record create --run .ptah/quickstart/runs/20261129-181158
  ptah-qualify record create --run runs/r1 --manifest release-manifest.txt --repository . --release-commit v0.2.4`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			d, err := LoadRun(flags.run)
			if err != nil {
				return err
			}
			options, err := createOptions(command.Context(), d, flags)
			if err != nil {
				return err
			}
			r, err := record.Create(d, options)
			if err != nil {
				return Exit(ExitNotEstablished, err)
			}
			return writeRecord(streams.Out, r, flags.output)
		},
	}
	command.Flags().StringVar(&flags.run, "run", "", "directory of the run")
	command.Flags().StringVar(&flags.output, "output", record.FileName, "file to write")
	command.Flags().StringVar(&flags.manifest, "manifest", "", "release manifest to bind; it must name every tested digest")
	command.Flags().StringVar(&flags.repository, "repository", "", "git repository that holds the commits of the release and of the harness")
	command.Flags().StringVar(&flags.releaseCommit, "release-commit", "", "commit or tag that the release was built from (default: the one the evidence names)")
	mustRequire(command, "run")
	mustComplete(command, "release-commit", completeRevisions)
	return command
}

func createOptions(ctx context.Context, d *dossier.Dossier, flags createFlags) (record.Options, error) {
	options := record.Options{Time: time.Now(), Version: d.Harness.Version}
	var err error
	if flags.manifest != "" {
		if options.Manifest, err = readInput(flags.manifest); err != nil {
			return options, err
		}
	}
	switch {
	case flags.repository != "":
		options.Ancestry, err = ancestryOf(ctx, flags.repository, d, flags.releaseCommit)
	case flags.releaseCommit != "":
		err = Exit(ExitUsage, errors.New("--release-commit says nothing without --repository, which holds that commit"))
	}
	return options, err
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

type signFlags struct {
	record, key, output, cells string
	only                       []string
}

func newRecordSign(streams IOStreams) *cobra.Command {
	var flags signFlags
	command := &cobra.Command{
		Use:   "sign --record FILE --key KEY [--cells DIR [--cell KEY]...]",
		Short: "Sign every statement of a record with a key file",
		Long: `Sign signs the statement of each cell and the one over all cells. With --cells it also writes each finished cell as a
file of its own, MATRIX.CELL` + record.CellSuffix + `, so that cells that ran on different machines can be gathered
for ` + "`ptah-qualify gate`" + `.`,
		Example: `  ptah-qualify record sign --key qualification.key
  ptah-qualify record sign --key qualification.key --cells out --cell data-plane.kubernetes-1.37.postgresql-17`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return signRecord(command.Context(), streams.Out, flags)
		},
	}
	command.Flags().StringVar(&flags.record, "record", record.FileName, "record to sign")
	command.Flags().StringVar(&flags.key, "key", "", "PEM private key (PKCS #8, ed25519 or ECDSA P-256)")
	command.Flags().StringVar(&flags.output, "output", "", "file to write instead of the record itself")
	command.Flags().StringVar(&flags.cells, "cells", "", "existing folder for one signed file of each finished cell")
	command.Flags().StringArrayVar(&flags.only, "cell", nil, "with --cells: only this cell; repeat for several")
	mustRequire(command, "key")
	mustComplete(command, "key", completePrivateKeys)
	mustComplete(command, "cell", func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return completeWords(cellsOf(flags.record)...)(command, nil, begun)
	})
	return command
}

// cellsOf lists the cells of a record that left evidence, and nothing where it cannot be read.
func cellsOf(path string) (keys []string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	claims, err := record.Inspect(data)
	if err != nil {
		return nil
	}
	for _, cell := range claims.Judgements() {
		if cell.Root != "" {
			keys = append(keys, cell.Cell.Key)
		}
	}
	return keys
}

func signRecord(ctx context.Context, out io.Writer, flags signFlags) error {
	if len(flags.only) > 0 && flags.cells == "" {
		return Exit(ExitUsage, errors.New("--cell says nothing without --cells, the folder to write it into"))
	}
	r, err := readRecord(flags.record)
	if err != nil {
		return err
	}
	signer, err := readSigner(flags.key)
	if err != nil {
		return err
	}
	if err := r.Sign(ctx, signer); err != nil {
		return Exit(ExitUsage, err)
	}
	var files []record.CellFile
	if flags.cells != "" {
		if files, err = r.CellFiles(flags.only...); err != nil {
			return Exit(ExitUsage, err)
		}
	}
	for _, file := range files {
		path := filepath.Join(flags.cells, file.Name)
		if err := writeOutput(path, file.Data); err != nil {
			return err
		}
		printLine(out, path)
	}
	if flags.output == "" {
		flags.output = flags.record
	}
	return writeRecord(out, r, flags.output)
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

func newRecordInspect(streams IOStreams) *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "inspect --record FILE",
		Short: "Print what a record claims, without checking it",
		Long: `Inspect prints the verdicts, digests and identities that a record states, and by whose key it says that it is signed.
Nothing of it is checked: record verify does that.`,
		Example: `  ptah-qualify record inspect --record reports/quickstart/` + record.FileName,
		Args:    cobra.NoArgs,
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
			printf(streams.Out, "unchecked: %s, use `record verify` to check it\n", signed)
			printClaims(streams.Out, claims)
			_, err = fmt.Fprintln(streams.Out, claims.Summary.Notice)
			return err
		},
	}
	command.Flags().StringVar(&path, "record", record.FileName, "record to print")
	return command
}

func printClaims(out io.Writer, verified *record.Verified) {
	summary := verified.Summary
	printf(out, "verdict: %s under %s, revision %s (%s), at %s\n", summary.Verdict, summary.Policy.Name, summary.Policy.Annotations["revision"], summary.Purpose, summary.TimeVerified.Format(time.RFC3339))
	for _, subject := range verified.Subject {
		printf(out, "release: %s sha256:%s\n", subject.Name, subject.Digest["sha256"])
	}
	for _, cell := range verified.Statements() {
		facts := cell.Facts()
		printf(out, "cell: %s %s%s\n", facts.Cell.Key, facts.Verdict, where(facts))
	}
	for _, requirement := range summary.Requirements {
		printf(out, "requirement: %s %s\n", requirement.Requirement, requirement.Verdict)
	}
	printf(out, "evidence: %s sha256:%s\n", summary.Evidence.Name, summary.Evidence.Digest["sha256"])
	commit := summary.Harness.Digest["gitCommit"]
	if commit == "" {
		commit = "of an unknown commit"
	}
	if a := summary.Ancestry; a == nil {
		printf(out, "harness: %s; how it relates to the release is not stated\n", commit)
	} else {
		printf(out, "harness: %s; its ancestry from release commit %s: %s\n", commit, a.Release, a.Verdict)
	}
}

// where says on what a cell ran; nothing where it left no evidence.
func where(facts record.Facts) string {
	if facts.Root == "" {
		return ""
	}
	execution := "emulated"
	if facts.Native {
		execution = "native"
	}
	return fmt.Sprintf(" on %s (%s), cluster %s, images from %s", facts.Platform, execution, facts.Cluster, facts.ImageSource)
}
