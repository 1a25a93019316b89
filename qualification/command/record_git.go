package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/profile"
)

// claimsPath is where a repository declares what it ships and what its claims depend on.
const claimsPath = "support/claims.yaml"

// gitRepository answers questions about commits from a local repository. It fetches nothing.
type gitRepository struct{ dir string }

func (g gitRepository) run(ctx context.Context, arguments ...string) ([]byte, error) {
	// Replaced objects would let a repository tell another history than its commits name.
	command := exec.CommandContext(ctx, "git", append([]string{"--no-replace-objects", "-C", g.dir}, arguments...)...)
	var problem bytes.Buffer
	command.Stderr = &problem
	out, err := command.Output()
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	said := strings.Join(strings.Fields(problem.String()), " ")
	return nil, fmt.Errorf("git %s in %s: %w: %s", arguments[0], g.dir, err, said)
}

var commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)

// commit returns the commit that a name stands for, as 40 hex digits.
func (g gitRepository) commit(ctx context.Context, name string) (string, error) {
	out, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("the repository %s has no commit %.80q, fetch it or check the name", g.dir, name)
	}
	id := strings.TrimSpace(string(out))
	if !commitPattern.MatchString(id) {
		return "", fmt.Errorf("git names the commit %.80q by %.80q, which is no sha1 of 40 hex digits", name, id)
	}
	return id, nil
}

// descends says whether the later commit has the earlier one as an ancestor, or is it.
func (g gitRepository) descends(ctx context.Context, earlier, later string) (bool, error) {
	if earlier == later {
		return true, nil
	}
	shallow, err := g.run(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return false, err
	}
	if strings.TrimSpace(string(shallow)) == "true" {
		return false, fmt.Errorf("the repository %s is a shallow clone, which cannot show where a commit descends from; fetch its whole history", g.dir)
	}
	_, err = g.run(ctx, "merge-base", "--is-ancestor", earlier, later)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return false, nil
	default:
		return false, err
	}
}

// changes lists the files that differ between two commits, with the ids of their contents. A file that moved is one
// that is gone and one that is new.
func (g gitRepository) changes(ctx context.Context, from, to string) ([]carryover.Change, error) {
	out, err := g.run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--abbrev=40", from, to)
	if err != nil {
		return nil, err
	}
	list := []carryover.Change{}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		// :100644 100755 <before> <after> M
		parts := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(parts) != 5 {
			return nil, fmt.Errorf("git describes a change of %.80q as %.80q, which is not understood", fields[i+1], fields[i])
		}
		list = append(list, carryover.Change{Kind: carryover.ChangedPath, Subject: fields[i+1], Before: content(parts[0], parts[2]), After: content(parts[1], parts[3])})
	}
	return list, nil
}

// content identifies a file by mode and blob: a mode that changed is a change of what is shipped.
func content(mode, blob string) string {
	if mode == "000000" {
		return carryover.Absent
	}
	return mode + " " + blob
}

// file returns a file of a commit, and whether it has it.
func (g gitRepository) file(ctx context.Context, commit, path string) ([]byte, bool, error) {
	listed, err := g.run(ctx, "ls-tree", "-z", "--name-only", commit, "--", path)
	if err != nil || len(listed) == 0 {
		return nil, false, err
	}
	data, err := g.run(ctx, "cat-file", "blob", commit+":"+path)
	return data, err == nil, err
}

// policies returns the digests of the profiles of a commit. A profile that this program cannot read is identified by
// its bytes: then any change of it counts.
func (g gitRepository) policies(ctx context.Context, commit string) (map[string]string, error) {
	listed, err := g.run(ctx, "ls-tree", "-z", "--name-only", commit, "--", "profiles/")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, path := range strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		if filepath.Ext(path) != ".yaml" {
			continue
		}
		data, _, err := g.file(ctx, commit, path)
		if err != nil {
			return nil, err
		}
		name, identity := strings.TrimSuffix(filepath.Base(path), ".yaml"), "file "+evidence.Digest(data)
		if p, err := profile.Decode(path, data); err == nil {
			name, identity = p.Name, p.Digest()
		}
		found[name] = identity
	}
	return found, nil
}

// loadClaims reads the declaration of claims.
func loadClaims(path string) (*carryover.Claims, error) {
	data, err := readInput(path)
	if err != nil {
		return nil, err
	}
	claims, err := carryover.Decode(path, data)
	return claims, Exit(ExitUsage, err)
}

// ancestryOf states how the harness of a run relates to the release it judged. Errors carry their exit code.
func ancestryOf(ctx context.Context, repository string, d *dossier.Dossier, releaseName string) (*carryover.Ancestry, error) {
	if releaseName == "" {
		for _, cell := range d.Cells {
			releaseName = cell.Release.Commit
		}
	}
	if releaseName == "" {
		return nil, Exit(ExitUsage, errors.New("the evidence does not say which commit the release was built from, name it with --release-commit"))
	}
	if d.Harness.Commit == "" {
		return nil, Exit(ExitNotEstablished, errors.New("the evidence does not say which commit the harness was, so that nothing can be said about its ancestry"))
	}
	ancestry, err := relateIn(ctx, repository, releaseName, d.Harness.Commit, d.Harness.Dirty)
	return ancestry, Exit(ExitUsage, err)
}

// ancestryWhereKnown is ancestryOf, and nil for a run of a tree that is no commit: its record then says that how harness
// and release relate is not stated.
func ancestryWhereKnown(ctx context.Context, repository string, d *dossier.Dossier) (*carryover.Ancestry, error) {
	named := slices.ContainsFunc(d.Cells, func(cell dossier.CellFile) bool { return cell.Release.Commit != "" })
	if !named || d.Harness.Commit == "" {
		return nil, nil
	}
	return ancestryOf(ctx, repository, d, "")
}

// relateIn asks the git repository in a folder how a harness relates to a release. A file counts as shipped by what the
// folder declares now or by what the release declared: a later list cannot shorten what was shipped.
func relateIn(ctx context.Context, dir, releaseName, harnessName string, dirty bool) (*carryover.Ancestry, error) {
	claims, err := loadClaims(filepath.Join(dir, filepath.FromSlash(claimsPath)))
	if err != nil {
		return nil, err
	}
	git := gitRepository{dir: dir}
	release, err := git.commit(ctx, releaseName)
	if err != nil {
		return nil, err
	}
	harness, err := git.commit(ctx, harnessName)
	if err != nil {
		return nil, err
	}
	descends, err := git.descends(ctx, release, harness)
	if err != nil {
		return nil, err
	}
	changes, err := git.changes(ctx, release, harness)
	if err != nil {
		return nil, err
	}
	shipped, err := git.shipped(ctx, release, claims.Shipped)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, change := range changes {
		files = append(files, change.Subject)
	}
	ancestry := carryover.Relate(release, harness, dirty, descends, shipped, files)
	return &ancestry, nil
}

func (g gitRepository) shipped(ctx context.Context, release string, now carryover.Paths) (carryover.Selector, error) {
	data, there, err := g.file(ctx, release, claimsPath)
	if err != nil || !there {
		return carryover.Union(now), err
	}
	then, err := carryover.Decode(claimsPath+" of the release", data)
	if err != nil {
		return nil, err
	}
	if then.Shipped.Digest() == now.Digest() {
		return carryover.Union(now), nil
	}
	return carryover.Union(now, then.Shipped), nil
}

// isFile says whether a path names a file, so that it is no name of a commit.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
