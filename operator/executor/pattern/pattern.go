// Package pattern matches the names of objects that a person lists: what is excluded, what is protected.
package pattern

import (
	"fmt"
	"slices"
	"strings"
)

// Pattern names objects by "name" in any schema or by "schema.name". A star stands for any number of characters. A part
// may stand in double quotes, so that it can hold a dot.
type Pattern struct {
	schema, object string // object is never empty
	fold           bool
}

// Parse reads patterns. With fold, letter case does not matter.
func Parse(texts []string, fold bool) ([]Pattern, error) {
	var out []Pattern
	for _, text := range texts {
		parts := Split(text)
		if len(parts) > 2 || slices.Contains(parts, "") || strings.TrimSpace(text) != text {
			return nil, fmt.Errorf("the pattern %q is not a name or schema.name", text)
		}
		p := Pattern{object: parts[len(parts)-1], fold: fold}
		if len(parts) == 2 {
			p.schema = parts[0]
		}
		if fold {
			p.schema, p.object = strings.ToLower(p.schema), strings.ToLower(p.object)
		}
		out = append(out, p)
	}
	return out, nil
}

// Split cuts a dotted name into its plain parts. A part that cannot be read is empty.
func Split(text string) []string {
	parts := []string{""}
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' && quoted && i+1 < len(text) && text[i+1] == '"':
			parts[len(parts)-1] += `"`
			i++
		case c == '"':
			quoted = !quoted
		case c == '.' && !quoted:
			parts = append(parts, "")
		default:
			parts[len(parts)-1] += string(c)
		}
	}
	if quoted {
		return []string{""}
	}
	return parts
}

// Match says whether a name fits one of the patterns. schema and object are plain, without SQL quotes.
func Match(patterns []Pattern, schema, object string) bool {
	return slices.ContainsFunc(patterns, func(p Pattern) bool {
		s, o := schema, object
		if p.fold {
			s, o = strings.ToLower(s), strings.ToLower(o)
		}
		return glob(p.object, o) && (p.schema == "" || glob(p.schema, s))
	})
}

// glob matches a text with a pattern whose only special character is the star.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return len(text) >= len(last) && strings.HasSuffix(text, last)
}
