package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// RemoteOptions returns what a client on this machine needs to talk to a lab's registry: its authority and its
// account. References name the registry by its LocalHost.
func RemoteOptions(ctx context.Context, registry RegistryDescription) ([]remote.Option, error) {
	pool, err := CertPool(registry.CAFile)
	if err != nil {
		return nil, err
	}
	password, err := os.ReadFile(registry.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("read the password of the lab's registry: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // the registry is on this machine
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(transport),
		remote.WithAuth(&authn.Basic{Username: registry.Username, Password: strings.TrimSpace(string(password))}),
	}, nil
}

// PushImage pushes an image to a lab's registry under a repository, without a tag, and returns its digest. Pods
// reach it as ClusterHost/repository@digest.
func PushImage(ctx context.Context, registry RegistryDescription, repository string, image v1.Image) (string, error) {
	options, err := RemoteOptions(ctx, registry)
	if err != nil {
		return "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("compute the digest of %s: %w", repository, err)
	}
	reference, err := name.NewDigest(registry.LocalHost + "/" + repository + "@" + digest.String())
	if err != nil {
		return "", fmt.Errorf("name %s in the lab's registry: %w", repository, err)
	}
	if err := remote.Write(reference, image, options...); err != nil {
		return "", fmt.Errorf("push %s to the lab's registry at %s: %w", repository, registry.LocalHost, err)
	}
	return digest.String(), nil
}
