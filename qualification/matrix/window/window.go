// Package window moves the window of supported Kubernetes minors by one: it adds the newest and drops the oldest in
// every file that names them, as one set of changes. Comments, order and line breaks of the files stay. It is pure: it
// takes the files as bytes and returns them changed, or refuses and changes nothing.
package window

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/matrix/catalogue"
)

// Move is a step of the window.
type Move struct {
	To       catalogue.Release // the newest minor from now on, with its pins
	Sum      string            // h1 digest of its Go module, as go.sum has it; empty where it is not known yet
	Verified catalogue.Day     // the day on which the window was compared with the upstream releases
}

// Change is a file before and after.
type Change struct {
	Path          string
	Before, After []byte
}

// MatricesFolder holds the matrices.
const MatricesFolder = "matrices"

// Propose returns the changes of the files that the move reaches, sorted by path. Files holds the catalogue of minors,
// that of images, the chart and the matrices by their paths; anything else in it is left alone.
func Propose(files map[string][]byte, move Move) ([]Change, error) {
	for _, name := range []string{catalogue.KubernetesFile, catalogue.ImagesFile, catalogue.ChartFile} {
		if _, there := files[name]; !there {
			return nil, fmt.Errorf("%s is missing, and the window moves everywhere or nowhere", name)
		}
	}
	before, err := catalogue.DecodeKubernetes(catalogue.KubernetesFile, files[catalogue.KubernetesFile])
	if err != nil {
		return nil, err
	}
	after, err := before.Move(catalogue.KubernetesFile, move.To, move.Verified)
	if err != nil {
		return nil, err
	}
	step := step{Move: move, before: before, after: after}
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(files)) {
		edit := step.edit(name)
		if edit == nil {
			continue
		}
		text, err := parse(name, files[name])
		if err != nil {
			return nil, err
		}
		if err := edit(text); err != nil {
			return nil, err
		}
		changed, err := text.apply()
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(changed, files[name]) {
			changes = append(changes, Change{Path: name, Before: files[name], After: changed})
		}
	}
	return changes, step.verify(changes)
}

type step struct {
	Move
	before, after *catalogue.Kubernetes
}

// edit returns how a file is changed, and nothing for a file that the move does not reach.
func (s step) edit(name string) func(*text) error {
	switch {
	case name == catalogue.KubernetesFile:
		return s.kubernetes
	case name == catalogue.ImagesFile:
		return s.images
	case name == catalogue.ChartFile:
		return s.chart
	case path.Dir(name) == MatricesFolder && path.Ext(name) == ".yaml":
		return s.matrix
	default:
		return nil
	}
}

// verify reads the changed catalogue of minors back: it must say what was asked for, whatever the text looked like.
func (s step) verify(changes []Change) error {
	for _, change := range changes {
		if change.Path != catalogue.KubernetesFile {
			continue
		}
		read, err := catalogue.DecodeKubernetes(change.Path, change.After)
		if err != nil {
			return fmt.Errorf("the changed file would not be sound: %w", err)
		}
		if !slices.Equal(read.Minors(), s.after.Minors()) || !maps.Equal(read.Newest().Pins, s.To.Pins) || read.LastVerified != s.Verified {
			return fmt.Errorf("%s: the changed file would not say what was asked for; change it by hand", change.Path)
		}
		return nil
	}
	return fmt.Errorf("%s: nothing changed in it; change it by hand", catalogue.KubernetesFile)
}

func (s step) kubernetes(t *text) error {
	verified, err := t.value(t.root, "lastVerified")
	if err != nil {
		return err
	}
	if err := t.replace(verified, string(s.Verified)); err != nil {
		return err
	}
	releases, err := t.value(t.root, "releases")
	if err != nil {
		return err
	}
	entries, err := t.items(releases)
	if err != nil {
		return err
	}
	newest := entries[len(entries)-1]
	t.remove(entries[0])
	var entry strings.Builder
	margin := strings.Repeat(" ", newest.dash)
	fmt.Fprintf(&entry, "%s- minor: %q\n%s  version: %s\n%s  pins:\n", margin, s.To.Minor, margin, s.To.Version, margin)
	for _, source := range slices.Sorted(maps.Keys(s.To.Pins)) {
		fmt.Fprintf(&entry, "%s    %s: %s\n", margin, source, s.To.Pins[source])
	}
	t.insertAfter(newest, entry.String())
	return nil
}

func (s step) chart(t *text) error {
	constraint, err := t.value(t.root, "kubeVersion")
	if err != nil {
		return err
	}
	return t.replace(constraint, s.after.KubeVersion())
}

// matrix moves every minor that the matrix names to the one that now stands at its place in the window: what was the
// oldest stays the oldest, what was the newest stays the newest.
func (s step) matrix(t *text) error {
	places := map[string]string{}
	for i, minor := range s.before.Minors() {
		places[minor] = s.after.Minors()[i]
	}
	for _, node := range t.scalars() {
		moved := moveMinors(node.Value, places)
		if moved == node.Value {
			continue
		}
		if err := t.replace(node, moved); err != nil {
			return err
		}
	}
	return nil
}

// moveMinors replaces the minors in a text. A minor that is part of a longer number or version is none.
func moveMinors(from string, places map[string]string) string {
	var moved strings.Builder
	for i := 0; i < len(from); {
		j := i
		for j < len(from) && (isDigit(from[j]) || from[j] == '.' && j > i && j+1 < len(from) && isDigit(from[j+1])) {
			j++
		}
		if j == i {
			moved.WriteByte(from[i])
			i++
			continue
		}
		if place, known := places[from[i:j]]; known {
			moved.WriteString(place)
		} else {
			moved.WriteString(from[i:j])
		}
		i = j
	}
	return moved.String()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
