package window

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// programsOf is the name of the program set of a Kubernetes minor in the catalogue of images.
func programsOf(minor string) string { return "kubernetes-" + minor }

// images gives the lab the node image of the newest minor, made as that of the minor before, and takes the one of the
// oldest away.
func (s step) images(t *text) error {
	if err := s.programs(t); err != nil {
		return err
	}
	images, err := t.value(t.root, "images")
	if err != nil {
		return err
	}
	newest, oldest := s.before.Newest(), s.before.Releases[0]
	model, err := t.find(images, map[string]string{"role": "node", "version": newest.Minor})
	if err != nil {
		return err
	}
	last, err := t.find(images, map[string]string{"role": "node", "version": oldest.Minor})
	if err != nil {
		return err
	}
	t.remove(last)
	entry, err := t.without(model, "registry")
	if err != nil {
		return err
	}
	entry = strings.NewReplacer("v"+newest.Version, "v"+s.To.Version, `"`+newest.Minor+`"`, `"`+s.To.Minor+`"`, programsOf(newest.Minor), programsOf(s.To.Minor)).Replace(entry)
	if pin, pinned := s.To.Pins["registry"]; pinned {
		image, digest, _ := strings.Cut(pin, "@")
		margin := strings.Repeat(" ", model.dash+2)
		entry += fmt.Sprintf("%sregistry:\n%s  repository: %s\n%s  digest: %s\n", margin, margin, image, margin, digest)
	}
	t.insertBefore(model, entry)
	return t.setField(model, "default", "")
}

// programs gives the modules source the programs of the newest minor. The entry that others refer to by an alias is
// always that of the newest.
func (s step) programs(t *text) error {
	programs, err := t.value(t.root, "programs")
	if err != nil {
		return err
	}
	newest, oldest := s.before.Newest(), s.before.Releases[0]
	model, err := t.find(programs, map[string]string{"name": programsOf(newest.Minor)})
	if err != nil {
		return err
	}
	last, err := t.find(programs, map[string]string{"name": programsOf(oldest.Minor)})
	if err != nil {
		return err
	}
	if name := anchor(last.node); name != "" {
		return t.refuse(last.node, "other entries refer to &%s in the oldest one, which is dropped; move it to the newest", name)
	}
	t.remove(last)
	entry, err := t.without(model, "sum")
	if err != nil {
		return err
	}
	staging := func(version string) string { return "v0" + strings.TrimPrefix(version, "1") }
	number := func(minor string) string { return "gitMinor=" + strings.TrimPrefix(minor, "1.") }
	entry = strings.NewReplacer(programsOf(newest.Minor), programsOf(s.To.Minor), "v"+newest.Version, "v"+s.To.Version,
		staging(newest.Version), staging(s.To.Version), number(newest.Minor), number(s.To.Minor)).Replace(entry)
	if s.Sum != "" {
		entry += fmt.Sprintf("%ssum: %s\n", strings.Repeat(" ", model.dash+2), s.Sum)
	}
	t.insertBefore(model, entry)
	for i := 0; i+1 < len(model.node.Content); i += 2 {
		if name := model.node.Content[i+1].Anchor; name != "" {
			return t.setField(model, model.node.Content[i].Value, "*"+name)
		}
	}
	return nil
}

// anchor returns the name of an anchor anywhere in a node.
func anchor(node *yaml.Node) string {
	if node.Anchor != "" {
		return node.Anchor
	}
	for _, child := range node.Content {
		if name := anchor(child); name != "" {
			return name
		}
	}
	return ""
}
