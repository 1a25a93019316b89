package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/lab/cluster"
	"ptah.run/ptah/qualification/lab/journal"
	"ptah.run/ptah/qualification/lab/source"
	"ptah.run/ptah/qualification/lab/trust"
)

// RegistryUser is the only account of the lab's registry.
const RegistryUser = "ptah"

// folder is the lab's folder on disk, locked while a lab goes up or down.
type folder struct {
	id      string
	dir     string
	lock    *os.File
	journal *journal.Journal
}

func (f *folder) path(elements ...string) string {
	return filepath.Join(append([]string{f.dir}, elements...)...)
}

func journalPath(dir string) string { return filepath.Join(dir, "journal.jsonl") }

// lockFolder takes a lab's lock, which lies beside its folder, so that the folder can be removed under it.
func lockFolder(dir string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("the folder for labs cannot be made: %w; make it writable or set XDG_STATE_HOME to a folder that is", err)
	}
	file, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the folder for labs is not writable: %w; make it writable or set XDG_STATE_HOME to a folder that is", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // another process has the lock
		return nil, fmt.Errorf("another process is taking the lab %s up or down: wait for it, or end it", filepath.Base(dir))
	}
	return file, nil
}

// openFolder makes a lab's folder and begins its journal. The caller holds the lock.
func openFolder(id, dir string, lock *os.File) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the lab's folder cannot be made: %w; make it writable or set XDG_STATE_HOME to a folder that is", err)
	}
	opened, err := journal.Open(journalPath(dir), time.Now)
	if err != nil {
		return nil, err
	}
	return &folder{id: id, dir: dir, lock: lock, journal: opened}, nil
}

func (f *folder) close() error {
	return errors.Join(f.journal.Close(), f.lock.Close())
}

// secrets are the parts of the folder that hold credentials. They go with the lab, even where its logs stay.
var secrets = []string{"credentials", "registry", "kubeconfig", "kubeconfig.lock"}

// credentials are what the folder says about logging in.
type credentials struct {
	registryPassword string
	databasePassword string
}

// prepare writes everything that containers of the lab read from this machine.
func (f *folder) prepare(registryHost, registryName string, auditDirs []string) (credentials, error) {
	for _, name := range secrets {
		if err := f.journal.Append(journal.Intended, journal.Secret, name, ""); err != nil {
			return credentials{}, err
		}
	}
	var made credentials
	var err error
	if made.registryPassword, err = trust.Password(); err != nil {
		return credentials{}, err
	}
	if made.databasePassword, err = trust.Password(); err != nil {
		return credentials{}, err
	}
	authority, err := trust.NewAuthority("lab "+f.id, time.Now())
	if err != nil {
		return credentials{}, err
	}
	certificate, key, err := authority.Server(time.Now(), registryName, "localhost", "127.0.0.1")
	if err != nil {
		return credentials{}, err
	}
	accounts, err := trust.PasswordFile(RegistryUser, made.registryPassword)
	if err != nil {
		return credentials{}, err
	}
	files := []struct {
		name    string
		content []byte
		mode    os.FileMode
	}{
		{"credentials/registry-password", []byte(made.registryPassword), 0o600},
		{"credentials/database-password", []byte(made.databasePassword), 0o600},
		{"ca.crt", authority.PEM(), 0o644},
		{"registry/tls.crt", certificate, 0o600},
		{"registry/tls.key", key, 0o600},
		{"registry/htpasswd", accounts, 0o600},
		{"registry/config.yml", []byte(registryConfig), 0o600},
		{"certs.d/" + registryHost + "/ca.crt", authority.PEM(), 0o644},
		{"certs.d/" + registryHost + "/hosts.toml", []byte(hostsFile(registryHost)), 0o644},
		{"audit/policy.yaml", []byte(audit.Policy), 0o644},
	}
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(f.path(file.name)), 0o755); err != nil {
			return credentials{}, fmt.Errorf("write the lab's files: %w", err)
		}
		if err := os.WriteFile(f.path(file.name), file.content, file.mode); err != nil {
			return credentials{}, fmt.Errorf("write the lab's files: %w", err)
		}
	}
	return made, f.prepareLogs(auditDirs)
}

// prepareLogs makes the folders that containers write into. An audit log that exists keeps its owner, so that it
// can be read without root.
func (f *folder) prepareLogs(auditDirs []string) error {
	for _, dir := range auditDirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the folder for an audit log: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, cluster.AuditFile), nil, 0o644); err != nil {
			return fmt.Errorf("begin an audit log: %w", err)
		}
	}
	statements := f.path("database")
	if err := os.MkdirAll(statements, 0o755); err != nil {
		return fmt.Errorf("make the folder for the database's log: %w", err)
	}
	// The server runs as somebody else than this process.
	if os.Geteuid() == 0 {
		if err := os.Chown(statements, source.UnprivilegedID, source.UnprivilegedID); err != nil {
			return fmt.Errorf("make the folder for the database's log: %w", err)
		}
	} else if err := os.Chmod(statements, 0o777); err != nil {
		return fmt.Errorf("make the folder for the database's log: %w", err)
	}
	if err := os.MkdirAll(f.path("logs"), 0o700); err != nil {
		return fmt.Errorf("make the folder for logs: %w", err)
	}
	return nil
}

const registryConfig = `version: 0.1
log:
  accesslog:
    disabled: false
  level: warn
storage:
  filesystem:
    rootdirectory: /var/lib/registry
  delete:
    enabled: true
http:
  addr: :5000
  tls:
    certificate: /etc/distribution/tls.crt
    key: /etc/distribution/tls.key
auth:
  htpasswd:
    realm: lab
    path: /etc/distribution/htpasswd
`

// hostsFile tells a node's containerd to trust the lab's authority for the registry. Credentials do not stand here:
// they come with each Pod's imagePullSecrets.
func hostsFile(host string) string {
	return fmt.Sprintf("server = \"https://%[1]s\"\n\n[host.\"https://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n  ca = \"/etc/containerd/certs.d/%[1]s/ca.crt\"\n", host)
}
