package runner

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

// Bounds of files that the Pod mounts.
const (
	maxCABytes           = 1 << 20
	maxDockerConfigBytes = 1 << 20
	maxPolicyBytes       = 64 << 10
)

// Modes of a registry credential.
const (
	authEnvironment  = "Environment"
	authDockerConfig = "DockerConfigJSON"
)

// dockerHub is the authority that a client really talks to for Docker Hub's names.
const dockerHub = "registry-1.docker.io"

// dockerConfig is the part of a docker configuration file that authenticates without another program.
type dockerConfig struct {
	Auths             map[string]dockerAuth `json:"auths"`
	CredentialsStore  string                `json:"credsStore"`
	CredentialHelpers map[string]string     `json:"credHelpers"`
}

type dockerAuth struct {
	Auth          string `json:"auth"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// authorityOf returns the registry that a reference names, as a client addresses it.
func authorityOf(reference string) (string, error) {
	rest := strings.TrimPrefix(reference, "oci://")
	authority, path, found := strings.Cut(rest, "/")
	if !found || authority == "" || path == "" || strings.ContainsAny(rest, " \t\r\n?#\\") || strings.Contains(authority, "@") {
		return "", errors.New("the reference does not name a registry and a repository")
	}
	authority = strings.ToLower(authority)
	if !strings.ContainsAny(authority, ".:") && authority != "localhost" {
		return "", errors.New("the reference does not begin with the host of a registry")
	}
	switch authority {
	case "docker.io", "index.docker.io":
		return dockerHub, nil
	}
	return authority, nil
}

// access is how a registry may be reached: checked, and with copies of what was checked.
type access struct {
	authority string
	caFile    string // a private copy, empty without one
}

// prepareAccess checks, before anything is contacted, that the credential was granted for this registry, transport and
// certificate authority. The grants live in the Secret beside the credential, so whoever owns the credential decides
// where it is sent, whatever the author of the resource writes.
func (s *session) prepareAccess(reference string) (*access, *result.Error) {
	authority, err := authorityOf(reference)
	if err != nil {
		return nil, newError(result.ErrorInvalidAccess, "%v", err)
	}
	plain, err := isTrue(s.program.Environment, env.OCIPlainHTTP)
	if err != nil {
		return nil, newError(result.ErrorInvalidAccess, "%v", err)
	}
	caSource, _ := s.program.Environment(env.OCICAFile)
	if plain && caSource != "" {
		return nil, newError(result.ErrorInvalidAccess, "plain HTTP and a certificate authority exclude each other")
	}
	caFile, caDigest := "", ""
	if caSource != "" {
		if caFile, caDigest, err = s.snapshotCA(caSource); err != nil {
			return nil, newError(result.ErrorInvalidAccess, "%v", err)
		}
	}
	if err := s.checkGrants(authority, plain, caDigest); err != nil {
		return nil, newError(result.ErrorInvalidAccess, "%v", err)
	}
	return &access{authority: authority, caFile: caFile}, nil
}

func isTrue(lookup func(string) (string, bool), name string) (bool, error) {
	switch value, _ := lookup(name); value {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, fmt.Errorf("%s must be true or false", name)
}

func (s *session) checkGrants(authority string, plain bool, caDigest string) error {
	value := func(name string) string {
		text, _ := s.program.Environment(name)
		return text
	}
	mode, grant := value(env.AuthMode), value(env.AuthRegistryGrant)
	if mode == "" {
		for _, name := range []string{env.AuthRegistryGrant, env.AuthAllowPlainHTTP, env.AuthCADigestGrant, env.OCIUsername, env.OCIPassword, env.OCIToken, env.OCIDockerConfig} {
			if value(name) != "" {
				return fmt.Errorf("%s is set without an authentication mode; a grant or credential without authentication is refused", name)
			}
		}
		return nil
	}
	switch {
	case grant == "":
		return errors.New("the registry Secret has no key \"registry\"; add it with the host[:port] that the credential is for")
	case grant != strings.ToLower(grant) || strings.ContainsAny(grant, "/@ \t\r\n"):
		return errors.New("the key \"registry\" of the registry Secret is not a lowercase host[:port]")
	case grant != authority:
		return fmt.Errorf("the registry credential is granted for %s, and the reference names %s", grant, authority)
	case plain && value(env.AuthAllowPlainHTTP) != "true":
		return errors.New("the registry credential may not be sent over plain HTTP; the Secret's key \"allowPlainHTTP\" is not \"true\"")
	case caDigest != "" && value(env.AuthCADigestGrant) != caDigest:
		return fmt.Errorf("the registry credential is not granted for this certificate authority; the Secret's key \"caSHA256\" is not %s", caDigest)
	}
	switch mode {
	case authEnvironment:
		return checkEnvironmentCredential(value(env.OCIUsername), value(env.OCIPassword), value(env.OCIToken), value(env.OCIDockerConfig))
	case authDockerConfig:
		return s.checkDockerConfig(authority, value(env.OCIDockerConfig))
	}
	return fmt.Errorf("the authentication mode %q is not known", mode)
}

func checkEnvironmentCredential(username, password, token, file string) error {
	switch {
	case file != "":
		return errors.New("a docker configuration is set in authentication mode Environment")
	case token != "" && (username != "" || password != ""):
		return errors.New("the registry Secret holds both a token and a user with password; keep one of them")
	case token == "" && (username == "" || password == ""):
		return errors.New("the registry Secret holds neither a token nor a user with password")
	}
	return nil
}

func (s *session) checkDockerConfig(authority, path string) error {
	if path == "" {
		return errors.New("no docker configuration is mounted in authentication mode DockerConfigJSON")
	}
	data, err := readBounded(path, maxDockerConfigBytes)
	if err != nil {
		return fmt.Errorf("the docker configuration: %w", err)
	}
	var file dockerConfig
	if err := json.Unmarshal(data, &file); err != nil {
		return errors.New("the docker configuration is not JSON of a docker configuration")
	}
	s.redactor.addDockerConfig(data)
	if file.CredentialsStore != "" || len(file.CredentialHelpers) > 0 {
		return errors.New("the docker configuration names a credential helper, which cannot run here; put the credential into \"auths\"")
	}
	for key := range file.Auths {
		host := strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
		host, _, _ = strings.Cut(host, "/")
		if found, err := authorityOf(host + "/x"); err == nil && found == authority {
			return nil
		}
	}
	return fmt.Errorf("the docker configuration has no credential for %s", authority)
}

// snapshotCA copies the bundle, so that what was compared is what is used, and returns path and digest of the copy.
func (s *session) snapshotCA(source string) (path, digest string, err error) {
	data, err := readBounded(source, maxCABytes)
	if err != nil {
		return "", "", fmt.Errorf("the registry's certificate authority: %w", err)
	}
	certificates := 0
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return "", "", fmt.Errorf("the registry's certificate authority holds a %s; only certificates belong there", block.Type)
		}
		certificates++
	}
	if certificates == 0 {
		return "", "", errors.New("the registry's certificate authority holds no PEM certificate")
	}
	path, err = s.snapshot("registry-ca.pem", data)
	return path, report.Digest(data), err
}

// snapshot writes a private copy that exists once.
func (s *session) snapshot(name string, data []byte) (string, error) {
	path := filepath.Join(s.common.workDir, name)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return "", fmt.Errorf("keep a copy of %s: %w", name, err)
	}
	_, err = file.Write(data)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("keep a copy of %s: %w", name, err)
	}
	return path, nil
}

// readBounded reads a regular file that holds between one and limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.New("the file cannot be opened")
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, errors.New("the file cannot be read")
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("the file is larger than %d bytes", limit)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errors.New("the file is empty")
	}
	return data, nil
}

// readPolicy checks that the mounted policy is the one the manager froze, and keeps a copy of exactly that.
func (s *session) readPolicy(path, expected string) (string, *result.Error) {
	data, err := readBounded(path, maxPolicyBytes)
	if err != nil {
		return "", newError(result.ErrorPolicyMismatch, "the verification policy: %v", err)
	}
	if found := report.Digest(data); found != expected {
		return "", newError(result.ErrorPolicyMismatch, "the verification policy is %s and the operation was claimed with %s", found, expected)
	}
	copied, err := s.snapshot("verification-policy", data)
	if err != nil {
		return "", newError(result.ErrorPolicyMismatch, "the verification policy: %v", err)
	}
	return copied, nil
}

// pinnedDigest returns the digest of a reference that is already pinned, or nothing.
func pinnedDigest(reference string) string {
	_, digest, _ := strings.Cut(reference, "@")
	if !report.IsDigest(digest) {
		return ""
	}
	return digest
}
