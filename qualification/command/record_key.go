package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/record"
)

// Names of a key pair that is generated.
const (
	privateName = "qualification.key"
	publicName  = "qualification.pub"
)

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

func newRecordKeyGenerate(streams IOStreams) *cobra.Command {
	var output, algorithm string
	command := &cobra.Command{
		Use:   "generate --output DIR",
		Short: "Write a new key pair as " + privateName + " and " + publicName,
		Long: `Generate writes a PKCS #8 private key, readable by its owner alone, and the PKIX public key that others verify with.
It never overwrites a key.`,
		Example: `  ptah-qualify record key generate --output keys --algorithm ecdsa`,
		Args:    cobra.NoArgs,
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
	mustComplete(command, "algorithm", completeWords(record.Ed25519, record.ECDSA))
	mustRequire(command, "output")
	mustComplete(command, "output", completeFolders)
	return command
}

func readSigner(path string) (*record.Signer, error) {
	pem, err := readInput(path)
	if err != nil {
		return nil, err
	}
	signer, err := record.LoadSigner(pem)
	if err != nil {
		return nil, Exit(ExitUsage, fmt.Errorf("%s: %w", path, err))
	}
	return signer, nil
}

func readVerifiers(paths []string) ([]*record.Verifier, error) {
	var keys []*record.Verifier
	for _, path := range paths {
		pem, err := readInput(path)
		if err != nil {
			return nil, err
		}
		key, err := record.LoadVerifier(pem)
		if err != nil {
			return nil, Exit(ExitUsage, fmt.Errorf("%s: %w", path, err))
		}
		keys = append(keys, key)
	}
	return keys, nil
}
