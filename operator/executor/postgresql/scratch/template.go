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

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// TemplateVariable names a folder with what initdb has made before: `data`, a data directory whose administrator is
// Administrator, without control file and write-ahead log, and `pg_resetwal.json`, the arguments with which
// pg_resetwal makes both. The executor's image carries one, because initdb takes longer than everything else that a
// plan without changes needs. The value "none" lets initdb run where there is one, too.
const TemplateVariable = "PTAH_PG_TEMPLATE"

// DefaultTemplate is where the executor's image has its template.
const DefaultTemplate = "/usr/share/ptah/postgresql/17"

// template returns the folder to start from, or an empty name where there is none: on a machine that has just Debian's
// packages.
func template(lookup func(string) string) (string, error) {
	dir := lookup(TemplateVariable)
	asked := dir != ""
	switch dir {
	case "none":
		return "", nil
	case "":
		dir = DefaultTemplate
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

// fill makes the data directory: from the template where there is one, else with initdb. It returns the name that the
// administrator has then.
func (s *Server) fill(ctx context.Context, data string) (administrator string, err error) {
	from, err := template(s.options.Getenv)
	if err != nil {
		return "", err
	}
	if from == "" {
		initdb := s.command(ctx, "initdb", "-D", data, "-U", s.admin, "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8",
			"--no-sync", "--no-instructions")
		if out, err := initdb.CombinedOutput(); err != nil {
			return "", fmt.Errorf("initdb: %w: %s", err, lastLine(out))
		}
		return s.admin, nil
	}
	if err := s.copyTree(filepath.Join(from, "data"), data); err != nil {
		return "", fmt.Errorf("copy the template of the scratch server: %w", err)
	}
	return Administrator, s.complete(ctx, from, data)
}

// rename gives the administrator its name on this server. Nobody can rename the role that they are, so that another
// one does it, which is gone afterwards.
func (s *Server) rename(ctx context.Context, from string) error {
	if from == s.admin {
		return nil
	}
	other := s.admin + "_"
	steps := []struct{ as, sql string }{
		{from, "CREATE ROLE " + dump.Quote(other) + " SUPERUSER LOGIN"},
		{other, "ALTER ROLE " + dump.Quote(from) + " RENAME TO " + dump.Quote(s.admin)},
		{s.admin, "DROP ROLE " + dump.Quote(other)},
	}
	for _, step := range steps {
		conn, err := s.connect(ctx, step.as, "postgres")
		if err != nil {
			return fmt.Errorf("name the administrator of the scratch server: %w", err)
		}
		_, err = conn.Exec(ctx, step.sql)
		if err := errors.Join(err, conn.Close(ctx)); err != nil {
			return fmt.Errorf("name the administrator of the scratch server: %w", err)
		}
	}
	return nil
}

// complete makes control file and write-ahead log. pg_resetwal asks for a control file; an empty one is one that it
// replaces.
func (s *Server) complete(ctx context.Context, from, data string) error {
	text, err := os.ReadFile(filepath.Join(from, "pg_resetwal.json"))
	if err != nil {
		return fmt.Errorf("read the template of the scratch server: %w", err)
	}
	var arguments []string
	if err := json.Unmarshal(text, &arguments); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(from, "pg_resetwal.json"), err)
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
		defer func() { _ = file.Close() }()
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
	return os.Lchown(path, int(s.account.UID), int(s.account.GID))
}
