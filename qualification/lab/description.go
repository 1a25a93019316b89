package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"ptah.run/ptah/qualification/lab/cache"
)

// EnvironmentVariable names the description of the lab to a suite.
const EnvironmentVariable = "PTAH_LAB"

// DefaultID is the id of a lab that nobody named.
const DefaultID = "lab"

// Label is on every container and network that a lab makes itself; its value is the lab's id. The containers of the
// cluster's nodes carry kind's label with the cluster's name instead, which holds the id too.
const Label = "run.ptah.lab"

// Description is what a suite needs to know of a lab. It lies as lab.json in the lab's folder.
type Description struct {
	ID                string                      `json:"id"`
	CreatedAt         time.Time                   `json:"createdAt"`
	KubernetesVersion string                      `json:"kubernetesVersion"` // as the API server says
	ControlPlanes     int                         `json:"controlPlanes"`
	Workers           int                         `json:"workers"`
	ClusterName       string                      `json:"clusterName"`
	ClusterUID        string                      `json:"clusterUID"` // of the kube-system namespace
	Kubeconfig        string                      `json:"kubeconfig"`
	BinDir            string                      `json:"binDir"`              // on this machine: kubectl, and what else a caller puts there
	Workspace         string                      `json:"workspace,omitempty"` // folder in which a person works with the lab by hand; empty where none was made
	Network           string                      `json:"network"`             // of the engine
	Registry          RegistryDescription         `json:"registry"`
	Databases         []DatabaseDescription       `json:"databases"`
	AuditLogs         []string                    `json:"auditLogs"` // files on this machine, one for each API server
	Images            map[string]ImageDescription `json:"images"`
	OperatorImages    map[string]OperatorImage    `json:"operatorImages,omitempty"`
	Platform          string                      `json:"platform"` // linux/amd64
	NativePlatform    bool                        `json:"nativePlatform"`
	Engine            EngineDescription           `json:"engine"`
}

// RegistryDescription says how to reach the lab's registry.
type RegistryDescription struct {
	ClusterHost   string `json:"clusterHost"` // host:port for Pods and nodes
	LocalHost     string `json:"localHost"`   // 127.0.0.1:port for this machine
	Username      string `json:"username"`
	PasswordFile  string `json:"passwordFile"`
	CAFile        string `json:"caFile"`
	ContainerName string `json:"containerName"`
}

// DatabaseDescription says how to reach one database server.
type DatabaseDescription struct {
	Engine            string `json:"engine"`  // PostgreSQL or MySQL
	Version           string `json:"version"` // as the server says
	ClusterHost       string `json:"clusterHost"`
	ClusterPort       int    `json:"clusterPort"`
	LocalHost         string `json:"localHost"`
	LocalPort         int    `json:"localPort"`
	AdminUser         string `json:"adminUser"`
	AdminPasswordFile string `json:"adminPasswordFile"`
	AdminDatabase     string `json:"adminDatabase"`
	ContainerName     string `json:"containerName"`
	StatementLog      string `json:"statementLog"` // file on this machine: the server's own journal of statements
}

// OperatorImage is one of the product's images in the lab's registry.
type OperatorImage struct {
	Digest           string `json:"digest"`
	ClusterReference string `json:"clusterReference"` // host:port/repository@digest for Pods
}

// EngineDescription says which container engine carried the lab.
type EngineDescription struct {
	Version       string `json:"version"`
	StorageDriver string `json:"storageDriver"`
	CgroupVersion string `json:"cgroupVersion"`
	CgroupDriver  string `json:"cgroupDriver"`
	Runtime       string `json:"runtime"`
}

// Load reads a lab's description.
func Load(path string) (*Description, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the description of the lab: %w", err)
	}
	var description Description
	if err := json.Unmarshal(content, &description); err != nil {
		return nil, fmt.Errorf("read the description of the lab in %s: %w", path, err)
	}
	if description.ID == "" {
		return nil, fmt.Errorf("%s describes no lab: it has no id", path)
	}
	return &description, nil
}

// Save writes a description into a lab's folder, replacing the file whole.
func (d *Description) Save(path string) error {
	content, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the description of the lab: %w", err)
	}
	if err := writeFile(path, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the description of the lab: %w", err)
	}
	return nil
}

// Root returns the folder that holds a folder for each lab.
func Root() (string, error) {
	state, err := cache.StateRoot()
	return filepath.Join(state, "labs"), err
}

var idPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$`)

// Dir returns the folder of a lab. Its error is a *UsageError for an id that cannot be a name of containers.
func Dir(id string) (string, error) {
	if !idPattern.MatchString(id) {
		return "", &UsageError{fmt.Sprintf("the lab id %q is not usable: take up to 24 lower-case letters, digits and hyphens, such as %s", id, DefaultID)}
	}
	root, err := Root()
	return filepath.Join(root, id), err
}

// DescriptionPath returns where the description of a lab lies.
func DescriptionPath(id string) (string, error) {
	dir, err := Dir(id)
	return filepath.Join(dir, "lab.json"), err
}

func writeFile(path string, content []byte, mode os.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // gone where it was renamed
	_, errWrite := temporary.Write(content)
	if err := errors.Join(errWrite, temporary.Chmod(mode), temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
