// Package tenant makes what a user of the operator needs in a lab: the credentials and the policy of a namespace, a
// database with an owner, a published schema. It makes them as a user does, with the released programs.
package tenant

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

	"ptah.run/ptah/qualification/lab"
)

// Names of the objects that every workload namespace holds.
const (
	PullSecret     = "lab-image-pull"  // imagePullSecret of operation Pods
	RegistrySecret = "lab-registry"    // registryAuthFrom, with its grants
	RegistryCA     = "lab-registry-ca" // transport.caFrom, key ca.crt
	PolicyMap      = "schema-policy"   // verificationPolicyFrom, key policy.yaml
	SchemaType     = "application/vnd.ptah.run.schema.v1"
)

const policyText = "version: 1\nartifact_types:\n  - " + SchemaType + "\n"

// Namespace is a namespace as production has it: restricted.
func Namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted",
		"pod-security.kubernetes.io/warn":    "restricted",
		"pod-security.kubernetes.io/audit":   "restricted",
	}}}
}

// Objects are the credentials and the policy of a namespace, as a user of a private registry writes them.
func Objects(registry lab.RegistryDescription, namespace string) ([]client.Object, error) {
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
	secrets := metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	maps := metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	return []client.Object{
		&corev1.Secret{TypeMeta: secrets, ObjectMeta: meta(PullSecret), Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: pull}},
		&corev1.Secret{TypeMeta: secrets, ObjectMeta: meta(RegistrySecret), StringData: map[string]string{
			"username": registry.Username, "password": secret, "registry": registry.ClusterHost,
			"caSHA256": "sha256:" + hex.EncodeToString(digest[:]),
		}},
		&corev1.ConfigMap{TypeMeta: maps, ObjectMeta: meta(RegistryCA), Data: map[string]string{"ca.crt": string(ca)}},
		&corev1.ConfigMap{TypeMeta: maps, ObjectMeta: meta(PolicyMap), Data: map[string]string{"policy.yaml": policyText}},
	}, nil
}

// Program is where a lab keeps a program for people and suites: ptah, kubectl and kubectl-ptah.
func Program(description *lab.Description, name string) string {
	return filepath.Join(description.BinDir, name)
}

// Artifact is a schema in the lab's registry.
type Artifact struct {
	// Reference is oci://host/repository:tag as operation Pods see it.
	Reference string
	// Digest of the manifest.
	Digest string
}

// PushSchema publishes SQL as a schema artifact with the released ptah program, as a user does.
func PushSchema(ctx context.Context, description *lab.Description, repository, tag, sql string) (Artifact, error) {
	dir, err := os.MkdirTemp("", "ptah-schema-")
	if err != nil {
		return Artifact{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left lies in the temporary folder
	if err := os.WriteFile(filepath.Join(dir, "schema.sql"), []byte(sql), 0o600); err != nil {
		return Artifact{}, err
	}
	password, err := os.ReadFile(description.Registry.PasswordFile)
	if err != nil {
		return Artifact{}, err
	}
	path := repository + ":" + tag
	command := exec.CommandContext(ctx, Program(description, "ptah"), "oci", "push",
		"oci://"+description.Registry.LocalHost+"/"+path, "--schema", dir, "--format", "json")
	command.Env = append(os.Environ(),
		"PTAH_OCI_USERNAME="+description.Registry.Username, "PTAH_OCI_PASSWORD="+strings.TrimSpace(string(password)),
		"PTAH_OCI_CA_FILE="+description.Registry.CAFile)
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
	return Artifact{Reference: "oci://" + description.Registry.ClusterHost + "/" + path, Digest: report.Digest}, nil
}
