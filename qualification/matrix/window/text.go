package window

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// text is a YAML file that is changed in place: the parsed nodes say where things stand, and only those bytes change.
type text struct {
	name   string
	data   string
	starts []int // where each line starts, and the end of the file
	root   *yaml.Node
	nodes  []*yaml.Node // every node, in the order of the file
	edits  []edit
}

// edit puts other bytes in the place of data[start:end].
type edit struct {
	start, end int
	with       string
}

func parse(name string, data []byte) (*text, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%s is not YAML: %s", name, strings.Join(strings.Fields(err.Error()), " "))
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: it must be a mapping of fields", name)
	}
	if strings.Contains(string(data), "\r") || !strings.HasSuffix(string(data), "\n") {
		return nil, fmt.Errorf("%s: end each line, the last one too, with a line feed and nothing else", name)
	}
	t := &text{name: name, data: string(data), root: document.Content[0], starts: []int{0}}
	for i, c := range t.data {
		if c == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	t.collect(t.root)
	return t, nil
}

func (t *text) collect(node *yaml.Node) {
	t.nodes = append(t.nodes, node)
	for _, child := range node.Content {
		t.collect(child)
	}
}

func (t *text) refuse(node *yaml.Node, format string, arguments ...any) error {
	return fmt.Errorf("%s:%d: %s", t.name, node.Line, fmt.Sprintf(format, arguments...))
}

func (t *text) edit(start, end int, with string) {
	t.edits = append(t.edits, edit{start: start, end: end, with: with})
}

// apply returns the changed file. Two changes of the same bytes are refused.
func (t *text) apply() ([]byte, error) {
	slices.SortStableFunc(t.edits, func(a, b edit) int { return a.start - b.start })
	var out strings.Builder
	at := 0
	for _, edit := range t.edits {
		if edit.start < at {
			return nil, fmt.Errorf("%s: two changes meet at %q; change it by hand", t.name, t.data[edit.start:edit.end])
		}
		out.WriteString(t.data[at:edit.start])
		out.WriteString(edit.with)
		at = edit.end
	}
	out.WriteString(t.data[at:])
	return []byte(out.String()), nil
}

// line returns a line without its line feed. Lines are counted from 0.
func (t *text) line(i int) string { return strings.TrimSuffix(t.data[t.starts[i]:t.starts[i+1]], "\n") }

// value returns the value of a key.
func (t *text) value(of *yaml.Node, key string) (*yaml.Node, error) {
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			return of.Content[i+1], nil
		}
	}
	return nil, t.refuse(of, "there is no %s in it", key)
}

// scalars returns every scalar, keys included.
func (t *text) scalars() []*yaml.Node {
	return slices.DeleteFunc(slices.Clone(t.nodes), func(node *yaml.Node) bool { return node.Kind != yaml.ScalarNode })
}

// replace writes another value where a scalar stands, in the same quotes. One of several lines is refused.
func (t *text) replace(node *yaml.Node, with string) error {
	quote := ""
	switch {
	case node.Style&yaml.DoubleQuotedStyle != 0:
		quote = `"`
	case node.Style&yaml.SingleQuotedStyle != 0:
		quote = `'`
	}
	// Columns count characters.
	runes := []rune(t.line(node.Line - 1))
	column := min(node.Column-1, len(runes))
	before := quote + node.Value + quote
	if node.Kind != yaml.ScalarNode || !strings.HasPrefix(string(runes[column:]), before) {
		return t.refuse(node, "%q stands on several lines, with an anchor or with escapes; write it plainly on one line", strings.TrimSpace(node.Value))
	}
	start := t.starts[node.Line-1] + len(string(runes[:column]))
	t.edit(start, start+len(before), quote+with+quote)
	return nil
}

// item is an entry of a list: whole lines, without the comments and blank lines that follow it.
type item struct {
	node     *yaml.Node
	dash     int // column of its dash, counted from 0
	from, to int // its lines
}

// items returns the entries of a list in block style.
func (t *text) items(list *yaml.Node) ([]item, error) {
	if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
		return nil, t.refuse(list, "it must be a list with one entry a line")
	}
	items := make([]item, len(list.Content))
	for i, node := range list.Content {
		entry := item{node: node, from: node.Line - 1, to: t.after(list)}
		entry.dash = len(t.line(entry.from)) - len(strings.TrimLeft(t.line(entry.from), " "))
		if !strings.HasPrefix(t.line(entry.from)[entry.dash:], "- ") || node.Kind != yaml.MappingNode {
			return nil, t.refuse(node, "an entry must begin with a dash and its first field")
		}
		if i+1 < len(list.Content) {
			entry.to = list.Content[i+1].Line - 1
		}
		entry.to = t.trim(entry.from, entry.to)
		items[i] = entry
	}
	return items, nil
}

// after returns the line of the first node after all that a node holds, and the end of the file where there is none.
func (t *text) after(node *yaml.Node) int {
	last := node
	for len(last.Content) > 0 {
		last = last.Content[len(last.Content)-1]
	}
	if next := slices.Index(t.nodes, last) + 1; next < len(t.nodes) {
		return t.nodes[next].Line - 1
	}
	return len(t.starts) - 1
}

// trim leaves out the comments and blank lines at the end of some lines.
func (t *text) trim(from, to int) int {
	for to > from+1 && (strings.TrimSpace(t.line(to-1)) == "" || isComment(t.line(to-1))) {
		to--
	}
	return to
}

func isComment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// find returns the only entry of a list that has these values.
func (t *text) find(list *yaml.Node, values map[string]string) (item, error) {
	entries, err := t.items(list)
	if err != nil {
		return item{}, err
	}
	found := slices.DeleteFunc(entries, func(entry item) bool {
		for key, want := range values {
			if value, err := t.value(entry.node, key); err != nil || value.Value != want {
				return true
			}
		}
		return false
	})
	if len(found) != 1 {
		return item{}, t.refuse(list, "there are %d entries with %s, and one is expected", len(found), strings.Trim(fmt.Sprint(values), "map[]"))
	}
	return found[0], nil
}

// remove takes an entry out with the comment right above it, which is about it.
func (t *text) remove(entry item) {
	from := entry.from
	for from > 0 && isComment(t.line(from-1)) && strings.Index(t.line(from-1), "#") == entry.dash {
		from--
	}
	t.edit(t.starts[from], t.starts[entry.to], "")
}

func (t *text) insertBefore(entry item, lines string) {
	t.edit(t.starts[entry.from], t.starts[entry.from], lines)
}

func (t *text) insertAfter(entry item, lines string) {
	t.edit(t.starts[entry.to], t.starts[entry.to], lines)
}

// field returns the lines of a field of an entry, and none where the entry does not have it.
func (t *text) field(entry item, key string) (from, to int, err error) {
	for i := 0; i+1 < len(entry.node.Content); i += 2 {
		node := entry.node.Content[i]
		if node.Value != key {
			continue
		}
		if i == 0 || entry.node.Style&yaml.FlowStyle != 0 {
			return 0, 0, t.refuse(node, "%s must be on a line of its own and not the first of its entry", key)
		}
		to = entry.to
		if i+2 < len(entry.node.Content) {
			to = entry.node.Content[i+2].Line - 1
		}
		return node.Line - 1, t.trim(node.Line-1, to), nil
	}
	return entry.to, entry.to, nil
}

// without returns the lines of an entry without one of its fields.
func (t *text) without(entry item, key string) (string, error) {
	from, to, err := t.field(entry, key)
	if err != nil {
		return "", err
	}
	return t.data[t.starts[entry.from]:t.starts[from]] + t.data[t.starts[to]:t.starts[entry.to]], nil
}

// setField writes another value of a field of an entry, and takes the field out where the value is empty.
func (t *text) setField(entry item, key, value string) error {
	from, to, err := t.field(entry, key)
	if err != nil || from == to {
		return err
	}
	line := ""
	if value != "" {
		line = strings.Repeat(" ", entry.dash+2) + key + ": " + value + "\n"
	}
	t.edit(t.starts[from], t.starts[to], line)
	return nil
}
