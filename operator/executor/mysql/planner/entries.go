package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
)

// entryAlter turns one table into another by the definitions that the server prints, foreign keys left out: one ALTER
// TABLE for columns, keys, checks and options, and one for partitions.
func entryAlter(from, to *dump.Table) ([]string, error) {
	var clauses []string
	options, recode, err := alterOptions(from.Options, to.Options)
	if err != nil {
		return nil, err
	}
	clauses = append(clauses, dropItems(from.Checks, to.Checks, "CHECK")...)
	clauses = append(clauses, dropItems(from.Keys, to.Keys, "KEY")...)
	clauses = append(clauses, alterColumns(from, to, recode)...)
	clauses = append(clauses, addItems(from.Keys, to.Keys)...)
	clauses = append(clauses, addItems(from.Checks, to.Checks)...)
	clauses = append(clauses, options...)
	alter := "ALTER TABLE " + sqltext.Quote(to.Name) + " "
	var out []string
	if from.Partition != to.Partition && from.Partition != "" && to.Partition == "" {
		out = append(out, alter+"REMOVE PARTITIONING")
	}
	if len(clauses) > 0 {
		out = append(out, alter+strings.Join(clauses, ", "))
	}
	if from.Partition != to.Partition && to.Partition != "" {
		out = append(out, alter+to.Partition)
	}
	return out, nil
}

// dropItems returns what leaves and what is not the same on both sides.
func dropItems(from, to []dump.Item, kind string) []string {
	now := dump.ByName(to)
	var out []string
	for _, item := range from {
		if now[strings.ToLower(item.Name)].SQL == item.SQL {
			continue
		}
		if item.Name == "PRIMARY" && item.Kind == dump.UniqueKey {
			out = append(out, "DROP PRIMARY KEY")
			continue
		}
		out = append(out, "DROP "+kind+" "+sqltext.Quote(item.Name))
	}
	return out
}

func addItems(from, to []dump.Item) []string {
	was := dump.ByName(from)
	var out []string
	for _, item := range to {
		if was[strings.ToLower(item.Name)].SQL != item.SQL {
			out = append(out, "ADD "+item.SQL)
		}
	}
	return out
}

// alterColumns follows the desired columns from left to right and puts each into its place. recode rewrites every
// column, because a column that names no character set has the table's.
func alterColumns(from, to *dump.Table, recode bool) []string {
	was, now := dump.ByName(from.Columns), dump.ByName(to.Columns)
	var out, order []string
	for _, c := range from.Columns {
		key := strings.ToLower(c.Name)
		if _, stays := now[key]; stays && stored(was[key]) == stored(now[key]) {
			order = append(order, key)
			continue
		}
		out = append(out, "DROP COLUMN "+sqltext.Quote(c.Name))
	}
	place := " FIRST"
	for i, c := range to.Columns {
		key := strings.ToLower(c.Name)
		at := slices.Index(order, key)
		switch {
		case at < 0:
			out = append(out, "ADD COLUMN "+c.SQL+place)
			order = slices.Insert(order, i, key)
		case at != i:
			out = append(out, "MODIFY COLUMN "+c.SQL+place)
			order = slices.Insert(slices.Delete(order, at, at+1), i, key)
		case was[key].SQL != c.SQL || recode:
			out = append(out, "MODIFY COLUMN "+c.SQL)
		}
		place = " AFTER " + sqltext.Quote(c.Name)
	}
	return out
}

// stored says whether a column's values lie in the rows: those of a virtual column do not.
func stored(c dump.Item) bool {
	depth := 0
	generated, isStored := false, false
	for _, t := range sqltext.Tokens(c.SQL) {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth == 0 && t.Is("GENERATED"):
			generated = true
		case depth == 0 && t.Is("STORED"):
			isStored = true
		}
	}
	return !generated || isStored
}

// defaults are what takes an option back that the server no longer prints.
var defaults = map[string]string{"COMMENT": "''", "ROW_FORMAT": "DEFAULT", "KEY_BLOCK_SIZE": "0", "STATS_PERSISTENT": "DEFAULT",
	"STATS_AUTO_RECALC": "DEFAULT", "STATS_SAMPLE_PAGES": "DEFAULT", "CHECKSUM": "0", "DELAY_KEY_WRITE": "0", "PACK_KEYS": "DEFAULT",
	"COMPRESSION": "''", "MIN_ROWS": "0", "MAX_ROWS": "0", "AVG_ROW_LENGTH": "0", "ENCRYPTION": "'N'", "AUTOEXTEND_SIZE": "0",
	"ENGINE_ATTRIBUTE": "''", "SECONDARY_ENGINE_ATTRIBUTE": "''"}

// alterOptions returns the options to set. recode says that the table's character set or collation changes.
func alterOptions(from, to string) (out []string, recode bool, err error) {
	if from == to {
		return nil, false, nil
	}
	before, names, err := readOptions(from)
	if err != nil {
		return nil, false, err
	}
	after, order, err := readOptions(to)
	if err != nil {
		return nil, false, err
	}
	for _, name := range order {
		if before[name] != after[name] {
			out = append(out, name+" = "+after[name])
			recode = recode || name == "CHARSET" || name == "COLLATE"
		}
	}
	if recode { // the collation of a character set that is named alone is that one's default
		out = slices.DeleteFunc(out, func(o string) bool { return strings.HasPrefix(o, "CHARSET") || strings.HasPrefix(o, "COLLATE") })
		out = append(out, "CHARSET = "+after["CHARSET"])
		if after["COLLATE"] != "" {
			out[len(out)-1] += " COLLATE = " + after["COLLATE"]
		}
	}
	for _, name := range names {
		if _, stays := after[name]; stays || name == "COLLATE" {
			continue
		}
		value, known := defaults[name]
		if !known {
			return nil, false, fmt.Errorf("a table option is taken away for which no default is known")
		}
		out = append(out, name+" = "+value)
	}
	return out, recode, nil
}

// readOptions reads options as the server prints them: NAME=value, with DEFAULT before the character set.
func readOptions(text string) (values map[string]string, order []string, err error) {
	values = map[string]string{}
	var tokens []sqltext.Token
	for _, t := range sqltext.Tokens(text) {
		if t.Kind != sqltext.Hint && t.Kind != sqltext.HintEnd && !t.Is("DEFAULT") {
			tokens = append(tokens, t)
		}
	}
	for i := 0; i < len(tokens); i++ {
		name := strings.ToUpper(tokens[i].Text)
		switch {
		case i+2 < len(tokens) && tokens[i+1].Is("="):
			values[name] = tokens[i+2].Text
			i += 2
		case i+1 < len(tokens) && name == "TABLESPACE":
			values[name] = tokens[i+1].Text
			i++
		default:
			return nil, nil, errors.New("the server prints a table option in an unknown form")
		}
		order = append(order, name)
	}
	return values, order, nil
}
