package artifact

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"ptah.run/ptah/operator/plan/report"
)

// Limits of what is read.
const (
	MaxManifestBytes = 4 << 20
	MaxFileBytes     = 64 << 20
	MaxTotalBytes    = 512 << 20
	MaxFiles         = 10_000
	maxConfigBytes   = 1 << 20 // a CA bundle or a docker configuration
)

// Access is how a registry is reached. The zero value is anonymous access over TLS with the system's authorities.
type Access struct {
	Username, Password string
	Token              string
	// DockerConfig and CAFile are paths. Only "auths" of a docker configuration is read; helpers are never run.
	DockerConfig, CAFile string
	PlainHTTP            bool
}

// Client talks to registries.
type Client struct {
	access    Access
	transport http.RoundTripper
	config    map[string]authn.AuthConfig
}

// NewClient reads the files that access names.
func NewClient(access Access) (*Client, error) {
	if access.PlainHTTP && access.CAFile != "" {
		return nil, fail(report.CodeInvalidInput, "plain HTTP and a CA file exclude each other")
	}
	if access.Token != "" && (access.Username != "" || access.Password != "") {
		return nil, fail(report.CodeInvalidInput, "a token and a user with password exclude each other")
	}
	if (access.Username == "") != (access.Password == "") {
		return nil, fail(report.CodeInvalidInput, "a registry user and a password belong together")
	}
	c := &Client{access: access}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = time.Minute
	base.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if access.CAFile != "" {
		pem, err := readSmall(access.CAFile, "the registry's CA file")
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fail(report.CodeInvalidInput, "the registry's CA file holds no PEM certificate")
		}
		base.TLSClientConfig.RootCAs = pool
	}
	c.transport = guard{base, access.PlainHTTP}
	if access.DockerConfig != "" {
		if err := c.readDockerConfig(access.DockerConfig); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func readSmall(path, what string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fail(report.CodeInvalidInput, what+" cannot be read")
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxConfigBytes+1))
	switch {
	case err != nil:
		return nil, fail(report.CodeInvalidInput, what+" cannot be read")
	case len(data) > maxConfigBytes:
		return nil, fail(report.CodeInvalidInput, what+" is larger than 1 MiB")
	}
	return data, nil
}

func (c *Client) readDockerConfig(path string) error {
	data, err := readSmall(path, "the docker configuration")
	if err != nil {
		return err
	}
	var file struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		// The decoder's message may repeat a piece of the file.
		return fail(report.CodeInvalidInput, "the docker configuration is not JSON with \"auths\"")
	}
	c.config = map[string]authn.AuthConfig{}
	for host, auth := range file.Auths {
		if auth.Auth != "" && auth.Username == "" {
			text, err := base64.StdEncoding.DecodeString(auth.Auth)
			user, password, found := strings.Cut(string(text), ":")
			if err != nil || !found {
				return fail(report.CodeInvalidInput, "an \"auth\" of the docker configuration is not the base64 of user:password")
			}
			auth.Username, auth.Password, auth.Auth = user, password, ""
		}
		c.config[normalHost(host)] = auth
	}
	return nil
}

// normalHost writes the keys that docker uses for one registry alike.
func normalHost(host string) string {
	host = strings.TrimPrefix(strings.TrimPrefix(host, "https://"), "http://")
	host, _, _ = strings.Cut(host, "/")
	if host == "docker.io" || host == "registry-1.docker.io" {
		return name.DefaultRegistry
	}
	return host
}

// credential returns what a registry is given.
func (c *Client) credential(host string) authn.Authenticator {
	switch {
	case c.access.Token != "":
		return authn.FromConfig(authn.AuthConfig{RegistryToken: c.access.Token})
	case c.access.Username != "":
		return authn.FromConfig(authn.AuthConfig{Username: c.access.Username, Password: c.access.Password})
	}
	if auth, ok := c.config[normalHost(host)]; ok {
		return authn.FromConfig(auth)
	}
	return authn.Anonymous
}

// options are those of one call. Nothing is retried: a failed reading is repeated whole by whoever asked for it.
func (c *Client) options(ctx context.Context, ref Reference) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithTransport(c.transport),
		remote.WithAuth(c.credential(ref.Host())),
		remote.WithUserAgent("ptah"),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes(),
		remote.WithRetryPredicate(func(error) bool { return false }),
		remote.WithJobs(2),
	}
}

// ref returns the reference for the client library, which would otherwise try TLS first even where plain HTTP is meant.
func (c *Client) ref(r Reference) name.Reference {
	if !c.access.PlainHTTP {
		return r.ref
	}
	if digest, ok := r.ref.(name.Digest); ok {
		if d, err := name.NewDigest(digest.Name(), name.Insecure); err == nil {
			return d
		}
	} else if t, err := name.NewTag(r.ref.Name(), name.Insecure); err == nil {
		return t
	}
	return r.ref
}

// guard refuses requests without TLS unless they are wanted, and bounds what comes back. The library decides by a
// registry's name whether plain HTTP may be tried; a credential must not depend on that.
type guard struct {
	base      http.RoundTripper
	plainHTTP bool
}

// RoundTrip sends a request as the base does, unless it would go over a connection that was not asked for.
func (g guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !g.plainHTTP {
		return nil, errPlainHTTP
	}
	if request.URL.Scheme == "https" && g.plainHTTP {
		return nil, errPlainHTTP // the library's first try; the second is the one that was asked for
	}
	response, err := g.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	limit := int64(MaxFileBytes)
	if !strings.Contains(request.URL.Path, "/blobs/") {
		limit = MaxManifestBytes
	}
	response.Body = &bounded{response.Body, limit}
	return response, nil
}

// bounded is a body that ends in an error at its limit.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n, errTooLarge
	}
	return n, err
}
