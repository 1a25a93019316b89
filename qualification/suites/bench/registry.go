package bench

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the objects that every workload namespace of a suite holds.
const (
	PullSecret     = "lab-image-pull"  // imagePullSecret of operation Pods
	RegistrySecret = "lab-registry"    // registryAuthFrom, with its grants
	RegistryCA     = "lab-registry-ca" // transport.caFrom, key ca.crt
	PolicyMap      = "schema-policy"   // verificationPolicyFrom, key policy.yaml
	SchemaType     = "application/vnd.ptah.run.schema.v1"
)

const policyText = "version: 1\nartifact_types:\n  - " + SchemaType + "\n"

// registryObjects are the credentials and the policy as a user of a private registry writes them.
func (b *Bench) registryObjects(namespace string) ([]client.Object, error) {
	registry := b.Lab.Registry
	password, err := os.ReadFile(registry.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("read the registry's password: %w", err)
	}
	ca, err := os.ReadFile(registry.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the registry's certificate: %w", err)
	}
	secret := strings.TrimSpace(string(password))
	pull, err := json.Marshal(map[string]any{"auths": map[string]any{registry.ClusterHost: map[string]string{
		"auth": base64.StdEncoding.EncodeToString([]byte(registry.Username + ":" + secret)),
	}}})
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(ca)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	return []client.Object{
		&corev1.Secret{ObjectMeta: meta(PullSecret), Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: pull}},
		&corev1.Secret{ObjectMeta: meta(RegistrySecret), StringData: map[string]string{
			"username": registry.Username, "password": secret, "registry": registry.ClusterHost,
			"caSHA256": "sha256:" + hex.EncodeToString(digest[:]),
		}},
		&corev1.ConfigMap{ObjectMeta: meta(RegistryCA), Data: map[string]string{"ca.crt": string(ca)}},
		&corev1.ConfigMap{ObjectMeta: meta(PolicyMap), Data: map[string]string{"policy.yaml": policyText}},
	}, nil
}

// Artifact is a schema in the lab's registry.
type Artifact struct {
	// Reference is oci://host/repository:tag as operation Pods see it.
	Reference string
	// Digest of the manifest.
	Digest string
}

// PushSchema publishes SQL as a schema artifact with the released ptah program, as a user does.
func (b *Bench) PushSchema(ctx context.Context, repository, tag, sql string) (Artifact, error) {
	dir, err := os.MkdirTemp("", "ptah-schema-")
	if err != nil {
		return Artifact{}, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "schema.sql"), []byte(sql), 0o600); err != nil {
		return Artifact{}, err
	}
	password, err := os.ReadFile(b.Lab.Registry.PasswordFile)
	if err != nil {
		return Artifact{}, err
	}
	path := repository + ":" + tag
	command := exec.CommandContext(ctx, filepath.Join(b.Lab.BinDir, "ptah"), "oci", "push",
		"oci://"+b.Lab.Registry.LocalHost+"/"+path, "--schema", dir, "--format", "json")
	command.Env = append(os.Environ(),
		"PTAH_OCI_USERNAME="+b.Lab.Registry.Username, "PTAH_OCI_PASSWORD="+strings.TrimSpace(string(password)),
		"PTAH_OCI_CA_FILE="+b.Lab.Registry.CAFile)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return Artifact{}, fmt.Errorf("push schema artifact %s: %w: %s %s", path, err, output, stderr.String())
	}
	var report struct {
		Digest string `json:"digest"`
	}
	if err := json.Unmarshal(output, &report); err != nil || report.Digest == "" {
		return Artifact{}, fmt.Errorf("push schema artifact %s: ptah's report has no digest: %s", path, output)
	}
	return Artifact{Reference: "oci://" + b.Lab.Registry.ClusterHost + "/" + path, Digest: report.Digest}, nil
}
