package scratch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// TemplateVariable names a folder with what initdb has made before: `data`, a data directory whose administrator is
// Administrator, without control file and write-ahead log, and `pg_resetwal.json`, the arguments with which
// pg_resetwal makes both. The executor's image carries one, because initdb takes longer than everything else that a
// plan without changes needs.
const TemplateVariable = "PTAH_PG_TEMPLATE"

// DefaultTemplate is where the executor's image has its template.
const DefaultTemplate = "/usr/share/ptah/postgresql/17"

// template returns the folder to start from, or an empty name where there is none: on a machine that has just Debian's
// packages, or when the target has a role named like the template's administrator.
func (s *Server) template(lookup func(string) string) (string, error) {
	dir := lookup(TemplateVariable)
	asked := dir != ""
	if !asked {
		dir = DefaultTemplate
	}
	if s.admin != Administrator {
		return "", nil
	}
	_, err := os.Stat(filepath.Join(dir, "pg_resetwal.json"))
	switch {
	case err == nil:
		return dir, nil
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return "", nil
	}
	return "", fmt.Errorf("read the template of the scratch server: %w; correct %s or leave it out", err, TemplateVariable)
}

// fill makes the data directory: from the template where there is one, else with initdb.
func (s *Server) fill(ctx context.Context, data string) error {
	template, err := s.template(s.options.Getenv)
	if err != nil {
		return err
	}
	if template == "" {
		initdb := s.command(ctx, "initdb", "-D", data, "-U", s.admin, "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8",
			"--no-sync", "--no-instructions")
		if out, err := initdb.CombinedOutput(); err != nil {
			return fmt.Errorf("initdb: %w: %s", err, lastLine(out))
		}
		return nil
	}
	if err := s.copyTree(filepath.Join(template, "data"), data); err != nil {
		return fmt.Errorf("copy the template of the scratch server: %w", err)
	}
	return s.complete(ctx, template, data)
}

// complete makes control file and write-ahead log. pg_resetwal asks for a control file; an empty one is one that it
// replaces.
func (s *Server) complete(ctx context.Context, template, data string) error {
	text, err := os.ReadFile(filepath.Join(template, "pg_resetwal.json"))
	if err != nil {
		return fmt.Errorf("read the template of the scratch server: %w", err)
	}
	var arguments []string
	if err := json.Unmarshal(text, &arguments); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(template, "pg_resetwal.json"), err)
	}
	if err := s.write(filepath.Join(data, "global", "pg_control"), nil); err != nil {
		return err
	}
	if out, err := s.command(ctx, "pg_resetwal", append(arguments, "-D", data)...).CombinedOutput(); err != nil {
		return fmt.Errorf("pg_resetwal: %w: %s", err, lastLine(out))
	}
	return nil
}

// copyTree copies folders and regular files, for the server's account alone to read and write.
func (s *Server) copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		into := filepath.Join(to, name)
		if entry.IsDir() {
			return errors.Join(os.Mkdir(into, 0o700), s.own(into))
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return s.write(into, file)
	})
}

// write makes a file of the server's account.
func (s *Server) write(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if content != nil {
		_, err = io.Copy(file, content)
	}
	return errors.Join(err, file.Close(), s.own(path))
}

func (s *Server) own(path string) error {
	if s.account == nil {
		return nil
	}
	return os.Lchown(path, int(s.account.uid), int(s.account.gid))
}
