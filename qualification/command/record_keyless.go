package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/record/keyless"
)

// keylessFlags name a Sigstore bundle beside a file and what it is held against.
type keylessFlags struct {
	bundle, root     string
	identity, issuer string
}

func (f *keylessFlags) register(command *cobra.Command) {
	command.Flags().StringVar(&f.bundle, "sigstore-bundle", "", "Sigstore bundle with a keyless signature over the whole file, instead of --key or beside it")
	command.Flags().StringVar(&f.root, "trusted-root", "", "trusted_root.json of the Sigstore that is believed")
	command.Flags().StringVar(&f.identity, "certificate-identity", "", "who must have signed, exactly: an address, or the URL of a workflow at a revision")
	command.Flags().StringVar(&f.issuer, "certificate-issuer", "", "who must have vouched for that identity, exactly")
	command.MarkFlagsRequiredTogether("sigstore-bundle", "trusted-root", "certificate-identity", "certificate-issuer")
}

// check is nil where no bundle is named.
func (f *keylessFlags) check() (func(data []byte) (string, error), error) {
	if f.bundle == "" {
		return nil, nil
	}
	bundled, err := readInput(f.bundle)
	if err != nil {
		return nil, err
	}
	root, err := readInput(f.root)
	if err != nil {
		return nil, err
	}
	trust, err := keyless.NewTrust(root, keyless.Signer{Identity: f.identity, Issuer: f.issuer})
	if err != nil {
		return nil, Exit(ExitUsage, fmt.Errorf("%s: %w", f.root, err))
	}
	return func(data []byte) (string, error) {
		if err := trust.Check(data, bundled); err != nil {
			return "", fmt.Errorf("%s: %w", f.bundle, err)
		}
		return trust.String(), nil
	}, nil
}
