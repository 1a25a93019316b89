package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/bundle"
	"ptah.run/ptah/qualification/bundle/secretscan"
	"ptah.run/ptah/qualification/record"
)

// NewBundleCommand returns `ptah-qualify bundle` with its subcommands.
func NewBundleCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "bundle",
		Short: "Pack a run with its record and reports into one file, and check such a file",
		Long: `A bundle is one tar file with the evidence of a run as it lies in its directory, the signed record and the reports
that the record binds. It says what the evidence shows and what it does not, and is checked without a network, by
bundle verify or, once unpacked, by sha256sum and record verify.`,
		Example: `  ptah-qualify bundle public --run RUN --record RECORD --output run.tar
  ptah-qualify bundle verify run.tar --key release.pub`,
	}
	command.AddCommand(newBundlePublic(streams), newBundleRestricted(streams), newBundleVerify(streams), newBundleScan(streams))
	return command
}

// bundleFlags are the flags that both kinds of bundles are made with.
type bundleFlags struct {
	run, record, reports, output string

	keys, secrets []string
}

func (f *bundleFlags) register(command *cobra.Command) {
	command.Flags().StringVar(&f.run, "run", "", "directory of the closed run")
	command.Flags().StringVar(&f.record, "record", "", "signed record of that run")
	command.Flags().StringVar(&f.reports, "reports", "", "folder with the reports that the record binds (default: they are rendered again)")
	command.Flags().StringVar(&f.output, "output", "", "file to write")
	command.Flags().StringArrayVar(&f.keys, "key", nil, "PEM public key to verify the record with and to enclose; repeat to admit several")
	command.Flags().StringArrayVar(&f.secrets, "secret-file", nil, "file with secret values of the lab that must be nowhere, one a line, or one PEM private key; repeatable")
	mustRequire(command, "run", "record", "output")
}

// prepare does everything before the first byte is written.
func (f bundleFlags) prepare(command *cobra.Command, kind bundle.Kind, restricted []string) (*bundle.Prepared, error) {
	if err := f.checkOutput(); err != nil {
		return nil, err
	}
	scanner, err := newScanner(f.secrets)
	if err != nil {
		return nil, err
	}
	contents, err := f.contents(command, kind)
	if err != nil {
		return nil, err
	}
	for _, path := range restricted {
		if err := contents.AddRestricted(path); err != nil {
			return nil, Exit(ExitUsage, err)
		}
	}
	prepared, err := contents.Prepare(scanner)
	var refusal *bundle.CredentialsError
	if errors.As(err, &refusal) {
		for _, finding := range refusal.Findings {
			printLine(command.ErrOrStderr(), finding)
		}
	}
	return prepared, Exit(ExitHarnessFailed, err)
}

func (f bundleFlags) checkOutput() error {
	dir := filepath.Dir(f.output)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Exit(ExitUsage, fmt.Errorf("cannot write into %s: the folder does not exist, create it or name another", dir))
	}
	if bundle.Inside(f.output, f.run) {
		return Exit(ExitUsage, fmt.Errorf("%s lies in the run %s, and a closed run is never added to: write it elsewhere", f.output, f.run))
	}
	return nil
}

func (f bundleFlags) contents(command *cobra.Command, kind bundle.Kind) (*bundle.Contents, error) {
	sources := bundle.Sources{Keys: map[string][]byte{}}
	if len(f.keys) > 0 {
		if _, err := verifyRecord(command.Context(), verifyFlags{record: f.record, keys: f.keys, run: f.run, reports: f.reports}); err != nil {
			return nil, err
		}
	}
	d, err := LoadRun(f.run)
	if err != nil {
		return nil, err
	}
	if sources.Record, err = readInput(f.record); err != nil {
		return nil, err
	}
	for _, path := range f.keys {
		if sources.Keys[filepath.Base(path)], err = readInput(path); err != nil {
			return nil, err
		}
	}
	if f.reports != "" {
		sources.Reports = func(name string) ([]byte, error) { return readInput(filepath.Join(f.reports, filepath.Base(name))) }
	}
	contents, err := bundle.Assemble(kind, f.run, d, sources)
	return contents, Exit(ExitUsage, err)
}

// newScanner reads the files with secret values. Errors name files and never their content.
func newScanner(paths []string) (*secretscan.Scanner, error) {
	var secrets [][]byte
	for _, path := range paths {
		data, err := readInput(path)
		if err != nil {
			return nil, err
		}
		parsed, err := secretscan.ParseSecrets(data)
		if err != nil {
			return nil, Exit(ExitUsage, fmt.Errorf("%s: %w", path, err))
		}
		secrets = append(secrets, parsed...)
	}
	scanner, err := secretscan.New(secretscan.DefaultLimits, secrets...)
	return scanner, Exit(ExitUsage, err)
}

func newBundlePublic(streams IOStreams) *cobra.Command {
	var flags bundleFlags
	command := &cobra.Command{
		Use:   "public --run DIR --record FILE --output FILE.tar",
		Short: "Write the bundle that anybody may have, unless a credential is found",
		Long: `Public writes a run, its signed record and its reports into one tar file. The same content gives the same bytes.

Before the first byte is written, every file is searched for credentials: for the values in the secret files, and for
private keys, tokens, passwords, database addresses, Kubernetes Secrets and registry configurations, in plain text, in
the strings of JSON, in base64 and the like, and inside archives. One finding refuses the bundle with exit code 3,
naming the file, the place and the kind, and never the credential. What cannot be looked into refuses it too.

With --key the record is verified first, with every byte of the evidence, and the key is enclosed for convenience:
whoever checks the bundle needs a key from elsewhere. Without it the record only has to be signed and about this run.`,
		Example: `  ptah-qualify bundle public --run .ptah/quickstart/runs/20261129-181158 --record .ptah/quickstart/qualification-record.json --output run.tar
  ptah-qualify bundle public --run RUN --record RECORD --key release.pub --secret-file lab/registry.password --output run.tar`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			prepared, err := flags.prepare(command, bundle.Public, nil)
			if err != nil {
				return err
			}
			var about bundle.Sum
			err = bundle.WriteFile(flags.output, 0o644, func(w io.Writer) error {
				about, err = prepared.WriteSummed(w)
				return err
			})
			if err != nil {
				return Exit(ExitHarnessFailed, err)
			}
			_, err = fmt.Fprintf(streams.Out, "%s\n%d files, %d bytes, sha256:%s\n", flags.output, len(prepared.Index().Files), about.Size, about.SHA256)
			return err
		},
	}
	flags.register(command)
	return command
}

func newBundleRestricted(streams IOStreams) *cobra.Command {
	var flags bundleFlags
	var recipients, restricted []string
	command := &cobra.Command{
		Use:   "restricted --run DIR --record FILE --recipient AGE... --output FILE.tar.age",
		Short: "Write the bundle with the restricted files, encrypted with age",
		Long: `Restricted writes what the public bundle holds and the restricted files, such as whole logs or a description of the
lab, encrypted for the given age recipients. The plaintext is never written to a disk.

What the public bundle holds is searched for credentials as there. Credentials in restricted files do not refuse the
bundle; they are listed, here and in its index. Beside the bundle, FILE.json says who can open it, with the sums of
plaintext and ciphertext. The bundle can be read by its owner alone.`,
		Example: `  ptah-qualify bundle restricted --run RUN --record RECORD --restricted lab/logs --recipient age1... --output run.tar.age`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := bundle.ParseRecipients(recipients); err != nil {
				return Exit(ExitUsage, err)
			}
			prepared, err := flags.prepare(command, bundle.Restricted, restricted)
			if err != nil {
				return err
			}
			for _, finding := range prepared.Index().Findings {
				printf(streams.Err, "encrypted with it: %s\n", finding)
			}
			return sealBundle(streams.Out, prepared, flags.output, recipients)
		},
	}
	flags.register(command)
	command.Flags().StringArrayVar(&recipients, "recipient", nil, "age recipient (age1...) that may open the bundle; repeatable")
	command.Flags().StringArrayVar(&restricted, "restricted", nil, "file, or folder with everything in it, to add as restricted; repeatable")
	mustRequire(command, "recipient")
	return command
}

func sealBundle(out io.Writer, prepared *bundle.Prepared, path string, recipients []string) error {
	var sealed bundle.Sealed
	err := bundle.WriteFile(path, 0o400, func(w io.Writer) (err error) {
		sealed, err = prepared.Seal(w, recipients)
		return err
	})
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	data, err := sealed.Encode()
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	if err := writeOutput(path+".json", data); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n%s\n%d files, %d bytes encrypted for %d recipients, sha256:%s\n", path, path+".json", len(prepared.Index().Files), sealed.Ciphertext.Size, len(recipients), sealed.Ciphertext.SHA256)
	return err
}

// bundleRecord is where a bundle has its record.
var bundleRecord = filepath.Join(bundle.RecordFolder, record.FileName)
