package rows

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kind is what a declared value looks like. What it is, the type of its column decides.
type Kind int

// Kinds.
const (
	Null      Kind = iota
	Text           // also dates and times
	Number         // in decimal form, as it is written
	Bool           // "true" or "false"
	Binary         // as lower-case hexadecimal digits
	Structure      // a list or a mapping, as JSON
	Printed        // what a server printed
)

// Value is one declared value.
type Value struct {
	Kind Kind
	Text string
}

// number is a number in the form that JSON and both servers read alike.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// maxDepth bounds how deep a structure may be nested.
const maxDepth = 100

func (p parser) value(node *yaml.Node) (Value, error) {
	switch node.Kind {
	case yaml.ScalarNode:
		return p.scalar(node)
	case yaml.SequenceNode, yaml.MappingNode:
		var b strings.Builder
		if err := p.json(&b, node, 0); err != nil {
			return Value{}, err
		}
		return Value{Structure, b.String()}, nil
	}
	return Value{}, refuse(p.file, node.Line, "a value refers to another (an alias), which is not supported; write it out", "")
}

func (p parser) scalar(node *yaml.Node) (Value, error) {
	switch node.ShortTag() {
	case "!!null":
		return Value{Kind: Null}, nil
	case "!!bool":
		return Value{Bool, strings.ToLower(node.Value)}, nil
	case "!!int", "!!float":
		if !number.MatchString(node.Value) {
			return Value{}, refuse(p.file, node.Line, "a number is not in decimal form without leading zeros, so that it could be read in two ways; write it so, or in quotes where it is a text", "")
		}
		return Value{Number, node.Value}, nil
	case "!!str", "!!timestamp":
		return Value{Text, node.Value}, nil
	case "!!binary":
		data, err := base64.StdEncoding.Strict().DecodeString(strings.Join(strings.Fields(node.Value), ""))
		if err != nil {
			return Value{}, refuse(p.file, node.Line, "a value marked !!binary is not base64", "")
		}
		return Value{Binary, hex.EncodeToString(data)}, nil
	}
	return Value{}, refuse(p.file, node.Line, "a value has a type that is not supported; there are null, true, false, numbers, texts, !!binary, lists and mappings", "")
}

// json writes a node as JSON, in the order in which it stands there and with numbers as they are written.
func (p parser) json(b *strings.Builder, node *yaml.Node, depth int) error {
	if depth > maxDepth {
		return refuse(p.file, node.Line, "a value is nested too deeply", "")
	}
	switch node.Kind {
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range node.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := p.json(b, item, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.MappingNode:
		return p.jsonObject(b, node, depth)
	}
	value, err := p.value(node)
	if err != nil {
		return err
	}
	if value.Kind == Binary {
		return refuse(p.file, node.Line, "JSON has no binary values", "")
	}
	b.WriteString(value.JSON())
	return nil
}

func (p parser) jsonObject(b *strings.Builder, node *yaml.Node, depth int) error {
	b.WriteByte('{')
	var seen []string
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i]
		if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!merge" || slices.Contains(seen, name.Value) {
			return refuse(p.file, name.Line, "a name in a mapping is not a text or stands there twice", "")
		}
		seen = append(seen, name.Value)
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(jsonText(name.Value) + ":")
		if err := p.json(b, node.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// JSON is the value as JSON. It must not be binary.
func (v Value) JSON() string {
	switch v.Kind {
	case Null:
		return "null"
	case Text:
		return jsonText(v.Text)
	}
	return v.Text
}

func jsonText(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
