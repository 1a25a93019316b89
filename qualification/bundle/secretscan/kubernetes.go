package secretscan

import (
	"bytes"
	"encoding/json"
	"regexp"

	"go.yaml.in/yaml/v3"
)

var (
	secretKind = regexp.MustCompile(`["']?kind["']?\s{0,8}:\s{0,8}["']?Secret(?:List)?["']?(?:[\s,}]|$)`)
	// secretData is the data of a Secret, in JSON or YAML, for text that is in neither form as a whole.
	secretData = regexp.MustCompile(`["'](?:data|stringData)["']\s{0,8}:\s{0,8}\{\s{0,8}["'][A-Za-z0-9._-]{1,253}["']\s{0,8}:\s{0,8}["'][^"'\s]{4,}|(?m)^\s{0,16}(?:data|stringData):[ \t]*\r?\n[ \t]{1,16}[A-Za-z0-9._-]{1,253}:[ \t]*\S{4,}`)
)

// nearSecret is how far from its kind the data of a Secret is looked for in text of no known form.
const nearSecret = 16 << 10

// kubernetes looks for Secrets with data. The smallest document around each mention is read: the line where it is
// JSON, else the whole text, else the YAML document. Where none of them can be read, the text itself is searched.
func (j *job) kubernetes(v *view) {
	if !bytes.Contains(v.text, []byte("Secret")) {
		return
	}
	line, document, known := span{}, span{}, map[int]bool{}
	checked, isJSON := false, false
	for _, location := range secretKind.FindAllIndex(v.text, -1) {
		at := location[0]
		if line.holds(at) {
			continue
		}
		if around := lineAround(v.text, at); json.Valid(v.text[around.from:around.to]) {
			line = around
			j.secretsIn(v, line)
			continue
		}
		if !document.holds(at) {
			if !checked {
				checked, isJSON = true, json.Valid(v.text)
			}
			if document = (span{0, len(v.text)}); !isJSON {
				document = documentAround(v.text, at)
			}
			known = j.secretsIn(v, document)
		}
		if !known[at] && secretData.Match(v.text[max(0, at-nearSecret):min(len(v.text), at+nearSecret)]) {
			j.found(v, at, KubernetesSecret)
		}
	}
}

type span struct{ from, to int }

func (s span) holds(at int) bool { return at >= s.from && at < s.to }

func lineAround(text []byte, at int) span {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	if length := bytes.IndexByte(text[at:], '\n'); length >= 0 {
		return span{from, at + length}
	}
	return span{from, len(text)}
}

// documentAround is the YAML document around an offset.
func documentAround(text []byte, at int) span {
	document := span{0, len(text)}
	if before := bytes.LastIndex(text[:at], []byte("\n---")); before >= 0 {
		document.from = before + 1
	}
	if after := bytes.Index(text[at:], []byte("\n---")); after >= 0 {
		document.to = at + after + 1
	}
	return document
}

// secretsIn reads a document as JSON or YAML and adds the Secrets in it. It returns where the document names the kind
// of an object, nothing where it is in neither form: what a mention elsewhere means, the document does not tell. Nodes
// are walked as written: no alias is followed, so that a small document stays small.
func (j *job) secretsIn(v *view, document span) map[int]bool {
	text := v.text[document.from:document.to]
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil
	}
	starts := []int{document.from}
	for i, c := range text {
		if c == '\n' {
			starts = append(starts, document.from+i+1)
		}
	}
	walk := secretWalk{kinds: map[int]bool{}, offset: func(node *yaml.Node) int {
		return min(starts[min(max(node.Line, 1), len(starts))-1]+node.Column-1, document.to)
	}}
	walk.found = func(node *yaml.Node) { j.found(v, walk.offset(node), KubernetesSecret) }
	walk.node(&root, false)
	return walk.kinds
}

// secretWalk walks a document.
type secretWalk struct {
	offset func(*yaml.Node) int
	found  func(*yaml.Node)
	kinds  map[int]bool // offsets of the keys "kind"
}

// node calls found with each object that is a Secret, or an item of a list of Secrets, with data.
func (w *secretWalk) node(node *yaml.Node, item bool) {
	if node.Kind != yaml.MappingNode {
		for _, child := range node.Content {
			w.node(child, item)
		}
		return
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		fields[key.Value] = node.Content[i+1]
		if key.Value == "kind" {
			w.kinds[w.offset(key)] = true
		}
	}
	kind := ""
	if fields["kind"] != nil {
		kind = fields["kind"].Value
	}
	if (kind == "Secret" || item && kind == "") && (holdsData(fields["data"]) || holdsData(fields["stringData"])) {
		w.found(node)
	}
	for _, child := range node.Content {
		w.node(child, kind == "SecretList")
	}
}

func holdsData(data *yaml.Node) bool {
	if data == nil || data.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(data.Content); i += 2 {
		if value := data.Content[i+1]; value.Kind == yaml.ScalarNode && value.Tag != "!!null" && !placeholder(value.Value) {
			return true
		}
	}
	return false
}
