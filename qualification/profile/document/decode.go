// Package document decodes declarations (profiles, matrices, catalogues) written in YAML, strictly: an unknown
// field, a field given twice, a wrong type, an anchor, an alias, a second document or an empty one is refused in one
// sentence that names the line and the field. It opens no file; callers hand over bytes and the name to say.
package document

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxSize is the largest document in bytes that is decoded.
const MaxSize = 4 << 20

// Error is a refusal of a document. Its message is one sentence.
type Error struct {
	Document string // the name of the document, usually a path
	Line     int    // 0 where the document as a whole is refused
	Path     string // such as targets[2].bound; empty at the top
	Problem  string // what is wrong and what to do
}

func (e *Error) Error() string {
	where := e.Document
	if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line)
	}
	if e.Path != "" {
		return where + ": " + e.Path + ": " + e.Problem
	}
	return where + ": " + e.Problem
}

// Decode reads the single YAML document in data into the struct that into points to. Struct fields are matched by
// their json tags. Fields that the document leaves out keep their zero value.
func Decode(name string, data []byte, into any) error {
	if len(data) > MaxSize {
		return &Error{Document: name, Problem: fmt.Sprintf("the document has %d bytes, the limit is %d", len(data), MaxSize)}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return &Error{Document: name, Problem: "the document is empty, declare at least apiVersion and kind"}
	case err != nil:
		return &Error{Document: name, Problem: "it is not YAML: " + strings.TrimPrefix(oneLine(err), "yaml: ")}
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return &Error{Document: name, Problem: "there is more than one document in it, keep one"}
	}
	return (&walk{name: name}).value(root.Content[0], reflect.ValueOf(into).Elem(), "")
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// printable keeps a name on its line: YAML lets a key run over several.
func printable(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

type walk struct{ name string }

func (w *walk) refuse(node *yaml.Node, path, format string, arguments ...any) error {
	return &Error{Document: w.name, Line: node.Line, Path: path, Problem: fmt.Sprintf(format, arguments...)}
}

func (w *walk) value(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return w.refuse(node, path, "anchors and aliases are not allowed, write the value out")
	}
	if into.Kind() == reflect.Pointer {
		if isNull(node) {
			return nil
		}
		fresh := reflect.New(into.Type().Elem())
		if err := w.value(node, fresh.Elem(), path); err != nil {
			return err
		}
		into.Set(fresh)
		return nil
	}
	if unmarshaler, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return w.text(node, unmarshaler, path)
	}
	switch into.Kind() {
	case reflect.Struct:
		return w.structure(node, into, path)
	case reflect.Map:
		return w.mapping(node, into, path)
	case reflect.Slice:
		return w.sequence(node, into, path)
	default:
		return w.scalar(node, into, path)
	}
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

func (w *walk) text(node *yaml.Node, into encoding.TextUnmarshaler, path string) error {
	if node.Kind != yaml.ScalarNode || isNull(node) {
		return w.refuse(node, path, "it must be a single value")
	}
	if err := into.UnmarshalText([]byte(node.Value)); err != nil {
		return w.refuse(node, path, "%s", oneLine(err))
	}
	return nil
}

func (w *walk) structure(node *yaml.Node, into reflect.Value, path string) error {
	fields := fieldsOf(into.Type())
	return w.pairs(node, path, func(key, value *yaml.Node, at string) error {
		index, known := fields[key.Value]
		if !known {
			return w.refuse(key, at, "it is no field%s; remove it or use one of: %s", nearest(key.Value, fields), names(fields))
		}
		return w.value(value, into.Field(index), at)
	})
}

func (w *walk) mapping(node *yaml.Node, into reflect.Value, path string) error {
	if into.IsNil() {
		into.Set(reflect.MakeMap(into.Type()))
	}
	return w.pairs(node, path, func(key, value *yaml.Node, at string) error {
		fresh := reflect.New(into.Type().Elem()).Elem()
		if err := w.value(value, fresh, at); err != nil {
			return err
		}
		into.SetMapIndex(reflect.ValueOf(key.Value).Convert(into.Type().Key()), fresh)
		return nil
	})
}

// pairs calls each for every key of a mapping, after refusing keys that are no plain strings or come twice.
func (w *walk) pairs(node *yaml.Node, path string, each func(key, value *yaml.Node, at string) error) error {
	if node.Kind != yaml.MappingNode {
		return w.refuse(node, path, "it must be a mapping of fields")
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := printable(key.Value)
		if path != "" {
			at = path + "." + printable(key.Value)
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || key.Anchor != "" {
			return w.refuse(key, path, "each key must be a plain string")
		}
		if first, twice := seen[key.Value]; twice {
			return w.refuse(key, at, "it is given twice, first on line %d; keep one", first)
		}
		seen[key.Value] = key.Line
		if err := each(key, value, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) sequence(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind != yaml.SequenceNode {
		return w.refuse(node, path, "it must be a list")
	}
	list := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		if err := w.value(item, list.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	into.Set(list)
	return nil
}

func (w *walk) scalar(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind != yaml.ScalarNode {
		return w.refuse(node, path, "it must be a single value, not a list or a mapping")
	}
	tag := node.ShortTag()
	switch into.Kind() {
	case reflect.String:
		if tag != "!!str" {
			return w.refuse(node, path, "it must be text, put %s in quotes", node.Value)
		}
		into.SetString(node.Value)
	case reflect.Bool:
		if tag != "!!bool" {
			return w.refuse(node, path, "it must be true or false, not %q", node.Value)
		}
		into.SetBool(strings.EqualFold(node.Value, "true"))
	case reflect.Int, reflect.Int64:
		number, err := strconv.ParseInt(strings.ReplaceAll(node.Value, "_", ""), 10, 64)
		if tag != "!!int" || err != nil {
			return w.refuse(node, path, "it must be a whole decimal number, not %q", node.Value)
		}
		into.SetInt(number)
	case reflect.Float64:
		number, err := strconv.ParseFloat(strings.ReplaceAll(node.Value, "_", ""), 64)
		if (tag != "!!int" && tag != "!!float") || err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
			return w.refuse(node, path, "it must be a finite decimal number, not %q", node.Value)
		}
		into.SetFloat(number)
	default:
		return fmt.Errorf("%s: %s: a %s cannot be declared in a document", w.name, path, into.Type())
	}
	return nil
}

func fieldsOf(structure reflect.Type) map[string]int {
	fields := map[string]int{}
	for i := range structure.NumField() {
		name, _, _ := strings.Cut(structure.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = i
		}
	}
	return fields
}

func names(fields map[string]int) string {
	list := make([]string, 0, len(fields))
	for name := range fields {
		list = append(list, name)
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// nearest proposes a field that differs from the given name in at most two letters.
func nearest(given string, fields map[string]int) string {
	best, least := "", 3
	for name := range fields {
		if d := distance(strings.ToLower(given), strings.ToLower(name)); d < least || (d == least && name < best) {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return ", did you mean " + best + "?"
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(row[j]+1, row[j-1]+1, cost)
		}
	}
	return row[len(b)]
}
