package classify

import (
	"strconv"
	"strings"
)

// internal maps the names that pg_dump prints to those of the catalog.
var internal = map[string]string{
	"smallint": "int2", "integer": "int4", "bigint": "int8", "character varying": "varchar", "real": "float4",
	"double precision": "float8", "character": "bpchar",
}

// widenings are the changes of type under which every stored value keeps its meaning, with whether rows are rewritten.
var widenings = map[[2]string]bool{
	{"int2", "int4"}: true, {"int2", "int8"}: true, {"int4", "int8"}: true, {"float4", "float8"}: true,
	{"int2", "numeric"}: true, {"int4", "numeric"}: true, {"int8", "numeric"}: true,
	{"varchar", "text"}: false,
}

// widens says whether every value of one type is a value of the other, and whether the change rewrites rows.
func widens(from, to string) (safe, rewrite bool) {
	fromName, fromSize := split(from)
	toName, toSize := split(to)
	if rewrite, ok := widenings[[2]string{fromName, toName}]; ok && (toSize == nil) {
		return true, rewrite
	}
	if fromName != toName || fromName == "" {
		return false, true
	}
	switch fromName {
	case "varchar", "varbit":
		return toSize == nil || fromSize != nil && toSize[0] >= fromSize[0], false
	case "numeric":
		return toSize == nil || len(fromSize) > 0 && toSize[0] >= fromSize[0] && scale(fromSize) == scale(toSize), false
	}
	return false, true
}

func scale(size []int) int {
	if len(size) > 1 {
		return size[1]
	}
	return 0
}

// split cuts a type into its catalog name and its modifiers.
func split(text string) (string, []int) {
	name, rest, found := strings.Cut(text, "(")
	name = strings.TrimSpace(name)
	if mapped, ok := internal[name]; ok {
		name = mapped
	}
	if !found {
		return name, nil
	}
	var size []int
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
		number, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return "", nil // an array or a type with words behind its modifiers
		}
		size = append(size, number)
	}
	return name, size
}
