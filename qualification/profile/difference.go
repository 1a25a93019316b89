package profile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// differences says field by field what after declares otherwise than before. Lists of named things are compared by
// name, lists of words as sets, so that a sentence names what changed and not where it stands.
func differences(before, after any) []string {
	var found []string
	compare(tree(before), tree(after), "", &found)
	return found
}

func tree(value any) any {
	var decoded any
	if err := json.Unmarshal([]byte(mustCanonical(value)), &decoded); err != nil {
		panic(err) // canonical JSON is JSON
	}
	return decoded
}

func compare(before, after any, path string, found *[]string) {
	switch old := before.(type) {
	case map[string]any:
		if fresh, ok := after.(map[string]any); ok {
			compareFields(old, fresh, path, ".", found)
			return
		}
	case []any:
		if fresh, ok := after.([]any); ok {
			compareLists(old, fresh, path, found)
			return
		}
	}
	if text(before) != text(after) {
		*found = append(*found, fmt.Sprintf("%s is %s instead of %s", path, text(after), text(before)))
	}
}

func compareFields(before, after map[string]any, path, separator string, found *[]string) {
	both := map[string]bool{}
	for name := range before {
		both[name] = true
	}
	for name := range after {
		both[name] = true
	}
	for _, name := range sortedKeys(both) {
		at := name
		if path != "" {
			at = path + separator + name
		}
		old, had := before[name]
		fresh, has := after[name]
		switch {
		case !had:
			*found = append(*found, fmt.Sprintf("%s is new: %s", at, text(fresh)))
		case !has:
			*found = append(*found, fmt.Sprintf("%s is gone, it was %s", at, text(old)))
		default:
			compare(old, fresh, at, found)
		}
	}
}

func compareLists(before, after []any, path string, found *[]string) {
	old, oldNamed := byName(before)
	fresh, freshNamed := byName(after)
	if oldNamed && freshNamed {
		compareFields(old, fresh, path, " ", found)
		return
	}
	words := len(*found)
	for _, item := range after {
		if !contains(before, item) {
			*found = append(*found, fmt.Sprintf("%s has %s in addition", path, text(item)))
		}
	}
	for _, item := range before {
		if !contains(after, item) {
			*found = append(*found, fmt.Sprintf("%s no longer has %s", path, text(item)))
		}
	}
	if len(*found) == words && text(before) != text(after) {
		*found = append(*found, fmt.Sprintf("%s has the order %s instead of %s", path, text(after), text(before)))
	}
}

// byName keys a list of things by what names them, each once; false where they have no names of their own.
func byName(list []any) (map[string]any, bool) {
	named := map[string]any{}
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		by, name := nameOf(fields)
		if _, twice := named[name]; twice || name == "" {
			return nil, false
		}
		rest := map[string]any{}
		for field, value := range fields {
			if field != by {
				rest[field] = value
			}
		}
		named[name] = rest
	}
	return named, true
}

// nameOf returns the field that names a thing, and its name.
func nameOf(fields map[string]any) (field, name string) {
	for _, field := range []string{"name", "alert", "resource", "class", "engine", "matrix", "requirement"} {
		if name, ok := fields[field].(string); ok {
			return field, name
		}
	}
	return "", ""
}

func contains(list []any, item any) bool {
	return slices.ContainsFunc(list, func(other any) bool { return text(other) == text(item) })
}

// text is a value for a sentence: words as they are, and in quotes where they are more than one.
func text(value any) string {
	switch v := value.(type) {
	case string:
		if v == "" || strings.ContainsAny(v, " \t\n") {
			return strconv.Quote(v)
		}
		return v
	case float64:
		return Number(v)
	default:
		return mustCanonical(v)
	}
}
