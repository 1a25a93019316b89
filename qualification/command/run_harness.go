package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/evidence/dossier"
)

// harnessOf says which commit of this repository is at work, and what identifies the changes to it where there are
// any, so that a cell of one changed tree is not kept in a run that goes on with another. What a run itself writes is
// no change: outputs are folders that are left out. A tree outside git has no commit, and says so.
func harnessOf(ctx context.Context, repository string, outputs ...string) (dossier.Harness, error) {
	harness := dossier.Harness{Version: Version}
	commit, err := git(ctx, repository, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return harness, ctx.Err() // no git here: the record then says that the commit is unknown
	}
	harness.Commit = strings.TrimSpace(string(commit))
	scope, err := without(repository, outputs)
	if err != nil {
		return harness, err
	}
	status, err := git(ctx, repository, append([]string{"status", "--porcelain", "--"}, scope...)...)
	if err != nil {
		return harness, fmt.Errorf("ask git whether %s was changed: %w", repository, err)
	}
	if len(status) == 0 {
		return harness, nil
	}
	harness.Dirty = true
	harness.Changes, err = changesOf(ctx, repository, scope)
	return harness, err
}

// changesOf digests what differs from the commit: the difference of known files, and whole files that git does not know.
func changesOf(ctx context.Context, repository string, scope []string) (string, error) {
	sum := sha256.New()
	difference, err := git(ctx, repository, append([]string{"diff", "HEAD", "--binary", "--no-ext-diff", "--"}, scope...)...)
	if err != nil {
		return "", fmt.Errorf("ask git what was changed in %s: %w", repository, err)
	}
	sum.Write(difference)
	unknown, err := git(ctx, repository, append([]string{"ls-files", "--others", "--exclude-standard", "-z", "--"}, scope...)...)
	if err != nil {
		return "", fmt.Errorf("ask git what is new in %s: %w", repository, err)
	}
	names := strings.FieldsFunc(string(unknown), func(r rune) bool { return r == 0 })
	slices.Sort(names)
	for _, name := range names {
		_, _ = fmt.Fprintf(sum, "%d %s\n", len(name), name) // a digest takes everything
		if err := digestInto(sum, filepath.Join(repository, name)); err != nil {
			return "", fmt.Errorf("read what is new in %s: %w", repository, err)
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// digestInto adds the size and the content of a file. What is no regular file has its name alone.
func digestInto(sum io.Writer, path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, _ = fmt.Fprintf(sum, "%d\n", info.Size()) // a digest takes everything
	_, err = io.Copy(sum, file)
	return err
}

// without is the scope of a git command that leaves folders out. Folders outside of the repository are outside anyway.
func without(repository string, folders []string) ([]string, error) {
	root, err := filepath.Abs(repository)
	if err != nil {
		return nil, err
	}
	scope := []string{"."}
	for _, folder := range folders {
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(root, absolute)
		if err == nil && relative != "." && relative != ".." && !strings.HasPrefix(relative, "../") {
			scope = append(scope, ":(exclude,literal)"+filepath.ToSlash(relative))
		}
	}
	return scope, nil
}

func git(ctx context.Context, repository string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", repository}, arguments...)...)
	var problem bytes.Buffer
	command.Stderr = &problem
	output, err := command.Output()
	if err != nil && problem.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(problem.String()), " "))
	}
	return output, err
}
