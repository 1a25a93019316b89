package rows

import (
	"errors"
	"math/big"
	"strings"
)

// input turns a declared value into the text that the server reads into a column; nil is null. The error says why the
// value cannot be meant for such a column, and does not hold the value.
func input(d Dialect, c Column, v Value) (*string, error) {
	text := v.Text
	switch {
	case v.Kind == Null:
		return nil, nil
	case v.Kind == Printed:
	case c.Class == JSON:
		if v.Kind == Binary {
			return nil, errors.New("a value marked !!binary is declared for a JSON column; write lists, mappings, texts and numbers")
		}
		text = v.JSON()
	case v.Kind == Structure:
		return nil, errors.New("a list or a mapping is declared for a column that does not hold JSON; write the value as a text in the database's own form")
	case (v.Kind == Binary) != (c.Class == BinaryData):
		return nil, errors.New("bytes and their column do not fit: a value for a binary column is base64 marked !!binary, and for no other column")
	case v.Kind == Bool:
		if c.Class != Boolean && (c.Class != Integer || d.Boolean(true) != "1") {
			return nil, errors.New("true or false is declared for a column that does not hold truth values; put a text that is one of these words in quotes")
		}
		text = d.Boolean(v.Text == "true")
	}
	if strings.ContainsRune(text, 0) {
		return nil, errors.New("a text holds a NUL character, which no text of a plan can hold; use a binary column")
	}
	return &text, nil
}

// keeps says whether a server kept a declared number: a column of numbers that rounds it holds something else than what
// is declared, and the server does not say so.
func keeps(c Column, v Value, printed *string) bool {
	if (c.Class != Integer && c.Class != Decimal) || v.Kind != Number && v.Kind != Text || printed == nil {
		return true
	}
	if len(v.Text) > 200 || !number.MatchString(v.Text) || !number.MatchString(*printed) || strings.ContainsAny(v.Text, "eE") {
		return true
	}
	declared, okA := new(big.Rat).SetString(v.Text)
	stored, okB := new(big.Rat).SetString(*printed)
	return okA && okB && declared.Cmp(stored) == 0
}
