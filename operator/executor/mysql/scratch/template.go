package scratch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ptah.run/ptah/operator/executor/shelter"
)

// TemplateVariable names a folder with a data directory that MakeTemplate has made. A scratch server then starts from a
// copy of it, which spares the three seconds that making one takes. The executor's image carries none: two of them
// never have the same bytes, because the server writes times and random names into its tables, and an image is built
// the same whoever builds it.
const TemplateVariable = "PTAH_MYSQL_TEMPLATE"

// MakeTemplate makes a data directory in a new folder.
func MakeTemplate(ctx context.Context, dir string, getenv func(string) string) error {
	program, err := Program(getenv)
	if err != nil {
		return err
	}
	account, err := shelter.Find(os.Geteuid(), accounts...)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for a data directory: %w", err)
	}
	s := &Server{dir: dir, program: program, account: account}
	if account != nil {
		if err := os.Chown(dir, int(account.UID), int(account.GID)); err != nil {
			return fmt.Errorf("make a folder for a data directory: %w", err)
		}
	}
	return s.initialise(ctx)
}

// fill makes the data directory: from a template, where there is one and the target compares names of tables as it
// does, or anew.
func (s *Server) fill(ctx context.Context) error {
	template := s.options.Getenv(TemplateVariable)
	if template == "" || s.options.Server.LowerCase != 0 {
		return s.initialise(ctx)
	}
	if err := s.copyData(ctx, filepath.Join(template, "d"), filepath.Join(s.dir, "d")); err != nil {
		return fmt.Errorf("copy the data directory of %s: %w", TemplateVariable, err)
	}
	return nil
}

func (s *Server) initialise(ctx context.Context) error {
	var said tail
	cmd := s.command(ctx, append(s.storage(), "--initialize-insecure")...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make a data directory: %w: %s", err, said.lastLine())
	}
	return nil
}

func (s *Server) copyData(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		into := filepath.Join(to, name)
		if entry.IsDir() {
			err = os.Mkdir(into, 0o700)
		} else {
			err = copyFile(path, into)
		}
		if err == nil && s.account != nil {
			err = os.Chown(into, int(s.account.UID), int(s.account.GID))
		}
		return err
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(filepath.Clean(from))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(filepath.Clean(to), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
