// Package cache keeps built things by the digest of their recipe, outside any checkout: what was built once for
// one recipe is never built again, two processes never build the same thing at once, and a build that stops in
// the middle leaves nothing that looks finished.
package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Root returns ${XDG_CACHE_HOME:-$HOME/.cache}/ptah.
func Root() (string, error) { return under("XDG_CACHE_HOME", ".cache") }

// StateRoot returns ${XDG_STATE_HOME:-$HOME/.local/state}/ptah.
func StateRoot() (string, error) { return under("XDG_STATE_HOME", filepath.Join(".local", "state")) }

func under(variable, home string) (string, error) {
	if base := os.Getenv(variable); base != "" {
		if !filepath.IsAbs(base) {
			return "", fmt.Errorf("%s is %q, which is no absolute path", variable, base)
		}
		return filepath.Join(base, "ptah"), nil
	}
	base, err := os.UserHomeDir()
	if err != nil || base == "" {
		return "", errors.New("neither " + variable + " nor HOME is set, so there is no folder to keep things in: set one of them")
	}
	return filepath.Join(base, home, "ptah"), nil
}
