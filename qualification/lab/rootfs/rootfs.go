// Package rootfs makes root file systems from Debian packages with mmdebstrap and turns them into layers. It leaves
// out what the catalogue excludes and writes down which packages went in; it runs no program of the file system.
package rootfs

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/layer"
)

const statusFile = "var/lib/dpkg/status"

// cancelLimit is how long a cancelled mmdebstrap may take to clean up.
const cancelLimit = 20 * time.Second

// Build makes the file system as a layer in dir. It needs the network of a Debian mirror.
func Build(ctx context.Context, filesystem catalog.Filesystem, dir string) (*layer.File, error) {
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		return nil, errors.New("mmdebstrap is not installed: apt-get install mmdebstrap, or run `ptah-qualify doctor --fix`")
	}
	scratch, err := os.MkdirTemp("", "ptah-rootfs-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the list of packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // what is left lies in the temporary folder
	list := filepath.Join(scratch, "packages")
	// The hook runs as another user where mmdebstrap is not run by root.
	work := filepath.Join(scratch, "work")
	if err := errors.Join(os.WriteFile(list, nil, 0o666), os.Chmod(list, 0o666), os.Chmod(scratch, 0o755),
		os.Mkdir(work, 0o700), os.Chmod(work, 0o777|os.ModeSticky)); err != nil {
		return nil, fmt.Errorf("make a file for the list of packages: %w", err)
	}
	arguments := append([]string{"--quiet", "--format=tar", "--variant=" + filesystem.Variant,
		"--include=" + strings.Join(filesystem.Include, ","),
		`--extract-hook=ls "$1"/var/cache/apt/archives >` + list}, filesystem.Options...)
	command := exec.CommandContext(ctx, "mmdebstrap", append(arguments, filesystem.Suite, "-")...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	command.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", layer.Epoch.Unix()), "TMPDIR="+work)
	// Its helpers are processes of their own that hold the pipe open: all of them are told to end.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = cancelLimit
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start mmdebstrap: %w", err)
	}
	writer, err := layer.NewWriter(dir)
	if err != nil {
		return nil, errors.Join(err, command.Cancel(), command.Wait())
	}
	defer writer.Abort()
	status, errFilter := Filter(output, writer, filesystem)
	if errFilter != nil {
		_, _ = io.Copy(io.Discard, output) // let mmdebstrap end and clean up
	}
	if err := command.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("mmdebstrap %s: %w: %s", filesystem.Suite, err, lastLines(stderr.String(), 4))
	}
	if errFilter != nil {
		return nil, fmt.Errorf("read the file system that mmdebstrap made: %w", errFilter)
	}
	return finish(writer, filesystem, status, list)
}

func finish(writer *layer.Writer, filesystem catalog.Filesystem, status []byte, list string) (*layer.File, error) {
	names, err := os.ReadFile(list)
	if err != nil {
		return nil, fmt.Errorf("read the list of packages: %w", err)
	}
	packages := packagesOfStatus(status)
	if filesystem.Variant == "extract" { // no package is installed there, only unpacked
		packages = packagesOfFiles(names)
	}
	if err := checkVersions(packages, filesystem.Expect); err != nil {
		return nil, err
	}
	writer.Packages(packages)
	return writer.Close()
}

// Filter copies a tar of a file system into a layer, without what is excluded, without device files and without
// the contents of excluded folders. It returns the package database it saw.
func Filter(source io.Reader, writer *layer.Writer, filesystem catalog.Filesystem) ([]byte, error) {
	exclude, err := compile(filesystem.Exclude)
	if err != nil {
		return nil, err
	}
	keep, err := compile(filesystem.Keep)
	if err != nil {
		return nil, err
	}
	var status []byte
	reader := tar.NewReader(bufio.NewReaderSize(source, 1<<20))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return status, nil
		}
		if err != nil {
			return nil, err
		}
		name := strings.Trim(strings.TrimPrefix(header.Name, "."), "/")
		if header.Typeflag == tar.TypeChar || header.Typeflag == tar.TypeBlock || name == "" {
			continue
		}
		if matches(exclude, name) && !matches(keep, name) {
			continue
		}
		var content io.Reader = reader
		if name == statusFile {
			if status, err = io.ReadAll(reader); err != nil {
				return nil, err
			}
			content = bytes.NewReader(status)
		}
		if err := writer.Copy(header, content); err != nil {
			return nil, err
		}
	}
}

// compile turns patterns into expressions: `*` stays within a folder, `**` does not.
func compile(patterns []string) ([]*regexp.Regexp, error) {
	var expressions []*regexp.Regexp
	for _, pattern := range patterns {
		quoted := regexp.QuoteMeta(pattern)
		quoted = strings.ReplaceAll(quoted, `\*\*`, `.+`)
		quoted = strings.ReplaceAll(quoted, `\*`, `[^/]*`)
		expression, err := regexp.Compile("^" + quoted + "$")
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		expressions = append(expressions, expression)
	}
	return expressions, nil
}

func matches(expressions []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(name) })
}

// packagesOfStatus reads name=version of each installed package of a dpkg database, sorted.
func packagesOfStatus(status []byte) []string {
	var packages []string
	for _, paragraph := range strings.Split(string(status), "\n\n") {
		var name, version string
		installed := false
		for _, line := range strings.Split(paragraph, "\n") {
			key, value, _ := strings.Cut(line, ": ")
			switch key {
			case "Package":
				name = value
			case "Version":
				version = value
			case "Status":
				installed = strings.HasSuffix(value, " installed")
			}
		}
		if installed && name != "" && version != "" {
			packages = append(packages, name+"="+version)
		}
	}
	slices.Sort(packages)
	return packages
}

// packagesOfFiles reads name=version from the names of package files (name_version_architecture.deb), sorted.
func packagesOfFiles(names []byte) []string {
	var packages []string
	for _, name := range strings.Fields(string(names)) {
		parts := strings.Split(strings.TrimSuffix(name, ".deb"), "_")
		if len(parts) == 3 && strings.HasSuffix(name, ".deb") {
			packages = append(packages, parts[0]+"="+strings.ReplaceAll(parts[1], "%3a", ":"))
		}
	}
	slices.Sort(packages)
	return packages
}

func checkVersions(packages []string, expect map[string]string) error {
	if len(packages) == 0 {
		return errors.New("the file system names no package, so nothing can be said about what it holds")
	}
	for name, prefix := range expect {
		index := slices.IndexFunc(packages, func(p string) bool { return strings.HasPrefix(p, name+"=") })
		if index < 0 {
			return fmt.Errorf("package %s is not in the file system", name)
		}
		if version := strings.TrimPrefix(packages[index], name+"="); !strings.HasPrefix(version, prefix) {
			return fmt.Errorf("package %s has version %s, and the image catalogue expects %s*", name, version, prefix)
		}
	}
	return nil
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > count {
		lines = lines[len(lines)-count:]
	}
	return strings.Join(lines, "; ")
}
