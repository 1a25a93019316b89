package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/lab/trust"
)

// The workspace is what a person needs to try things by hand in a lab: .ptah/env for the shell, .ptah/shop.yaml with a
// namespace that can pull from the lab's registry, and an empty database "shop" of its own.
const (
	workspaceFolder = ".ptah"
	shop            = "shop"
)

var workspaceFiles = []string{"env", "shop.yaml"}

// makeWorkspace writes the workspace of the lab below a folder. One that exists already is kept: a person may have
// changed it. It is about PostgreSQL, so that a lab with another database gets none.
func (q *quickstart) makeWorkspace(ctx context.Context, root string) error {
	server, err := tenant.Server(q.description)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	if server.Engine != lab.PostgreSQL {
		return nil
	}
	if root, err = filepath.Abs(root); err != nil {
		return Exit(ExitHarnessFailed, fmt.Errorf("name the workspace of the lab: %w", err))
	}
	dir := filepath.Join(root, workspaceFolder)
	marker := filepath.Join(filepath.Dir(q.labFile), "workspace")
	if _, err := os.Stat(marker); err == nil {
		return nil
	}
	password, err := trust.Password()
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	database, err := tenant.CreateDatabase(ctx, server, shop, password)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	manifests, err := q.shopManifests(database)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	environment, err := q.environment(server.ContainerName)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	for name, content := range map[string][]byte{"env": environment, "shop.yaml": manifests} {
		if err := evidence.WriteFileAtomicMode(filepath.Join(dir, name), content, 0o600); err != nil {
			return Exit(ExitHarnessFailed, err)
		}
	}
	q.description.Workspace = root
	if err := q.description.Save(q.labFile); err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	return Exit(ExitHarnessFailed, evidence.WriteFileAtomic(marker, []byte(dir+"\n")))
}

// shopManifests are the namespace with its credentials, as one file for "kubectl apply -f".
func (q *quickstart) shopManifests(database *tenant.Database) ([]byte, error) {
	objects, err := tenant.Objects(q.description.Registry, shop)
	if err != nil {
		return nil, err
	}
	all := []any{tenant.Namespace(shop)}
	for _, object := range objects {
		all = append(all, object)
	}
	all = append(all, tenant.Secret(shop, "shop-db", database.ClusterURL()))
	var documents bytes.Buffer
	for _, object := range all {
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("write the manifests of namespace %s: %w", shop, err)
		}
		documents.WriteString("---\n")
		documents.Write(document)
	}
	return documents.Bytes(), nil
}

// environment is a file for the shell's "source".
func (q *quickstart) environment(databaseContainer string) ([]byte, error) {
	registry := q.description.Registry
	password, err := os.ReadFile(registry.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("read the registry's password: %w", err)
	}
	lines := []struct{ name, value string }{
		{"KUBECONFIG", q.description.Kubeconfig},
		{"PATH", q.description.BinDir + ":$PATH"},
		{"LAB_REGISTRY", registry.LocalHost},
		{"LAB_REGISTRY_IN_CLUSTER", registry.ClusterHost},
		{"PTAH_OCI_USERNAME", registry.Username},
		{"PTAH_OCI_PASSWORD", strings.TrimSpace(string(password))},
		{"PTAH_OCI_CA_FILE", registry.CAFile},
		{"LAB_SQL", "docker exec " + databaseContainer + " /usr/lib/postgresql/17/bin/psql -h /tmp -U shop shop"},
	}
	var out strings.Builder
	out.WriteString("# Source this in a shell to use the lab by hand.\n")
	for _, line := range lines {
		fmt.Fprintf(&out, "export %s=\"%s\"\n", line.name, line.value)
	}
	return []byte(out.String()), nil
}

func removeWorkspace(repository string) error {
	var errs []error
	for _, name := range workspaceFiles {
		if err := os.Remove(filepath.Join(repository, workspaceFolder, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// printWorkspace tells a person how to go on.
func (q *quickstart) printWorkspace() error {
	_, err := fmt.Fprintf(q.streams.Out, `
KUBECONFIG=%s

The lab is up with the operator installed. In a shell, in this folder:

  source .ptah/env                    # kubectl, kubectl ptah, ptah and the lab's addresses
  kubectl apply -f .ptah/shop.yaml    # a namespace with credentials and an empty database
  kubectl get pods -n ptah-system     # the operator

Then follow support/docs/first-schema-change.md. "make lab-down" removes everything.
`, q.description.Kubeconfig)
	return err
}
