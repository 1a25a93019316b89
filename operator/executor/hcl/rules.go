package hcl

import (
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// rules refuses what the grammar allows attribute by attribute, and of which Atlas would lose one.
func (w *walker) rules(b *hclsyntax.Block) error {
	plain := func(name string) string {
		attribute := b.Body.Attributes[name]
		if attribute == nil {
			return ""
		}
		if v, ok := literalText(attribute.Expr); ok {
			return v
		}
		if steps := path(attribute.Expr); len(steps) == 1 {
			return steps[0]
		}
		return ""
	}
	isTrue := func(name string) bool {
		attribute := b.Body.Attributes[name]
		if attribute == nil {
			return false
		}
		v, ok := literal(attribute.Expr)
		return ok && v.True()
	}
	no := func(name, format string, args ...any) error {
		return refuse(b.Body.Attributes[name].NameRange, format, args...)
	}
	kind := strings.ToUpper(plain("type"))
	switch {
	case w.mysql && (b.Type == "table" || b.Type == "column") && plain("charset") != "" && plain("collate") == "":
		return no("charset", "charset stands without collate; give both, because the collation does not follow from it in every case")
	case w.mysql && b.Type == "index" && kind != "" && kind != "BTREE" && kind != "HASH" && kind != "FULLTEXT" && kind != "SPATIAL":
		return no("type", "the type of an index is BTREE, HASH, FULLTEXT or SPATIAL")
	case w.mysql && b.Type == "index" && isTrue("unique") && (kind == "FULLTEXT" || kind == "SPATIAL"):
		return no("type", "an index of this type cannot be unique; leave one of both out")
	case w.mysql && b.Type == "index" && plain("parser") != "" && kind != "FULLTEXT":
		return no("parser", "a parser belongs to an index of the type FULLTEXT; leave it out or give that type")
	case !w.mysql && b.Type == "as" && kind != "" && kind != "STORED":
		return no("type", "PostgreSQL 17 stores every computed column; write STORED or leave the type out")
	case b.Type == "on" && isTrue("nulls_first") && isTrue("nulls_last"):
		return no("nulls_first", "nulls_first and nulls_last exclude each other; leave one out")
	}
	return nil
}
