package report

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// validateRows checks what a plan says of the rows that it answers for.
func (p *Plan) validateRows() error {
	if (len(p.ManagedRows) == 0) != (p.RowsFingerprint == "") || p.RowsFingerprint != "" && !IsDigest(p.RowsFingerprint) {
		return errors.New("managedRows and rowsFingerprint do not belong together")
	}
	for i := range p.ManagedRows {
		if err := p.ManagedRows[i].validate(); err != nil {
			return fmt.Errorf("managedRows[%d]: %w", i, err)
		}
		if i > 0 && (p.ManagedRows[i-1].Schema > p.ManagedRows[i].Schema ||
			p.ManagedRows[i-1].Schema == p.ManagedRows[i].Schema && p.ManagedRows[i-1].Table >= p.ManagedRows[i].Table) {
			return errors.New("managedRows is not sorted by table, or names one twice")
		}
	}
	return nil
}

func (m *ManagedRows) validate() error {
	names := append([]string{m.Schema, m.Table}, m.Key...)
	names = append(names, m.Columns...)
	for _, name := range names {
		if name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return errors.New("a name is empty or not UTF-8 text without NUL")
		}
	}
	switch {
	case m.Scope != "table" && m.Scope != "keys":
		return fmt.Errorf("unknown scope %q", m.Scope)
	case len(m.Key) == 0 || len(m.Columns) == 0:
		return errors.New("key or columns is empty")
	case (m.Scope == "keys") != (len(m.Keys) > 0):
		return errors.New("keys do not agree with the scope")
	}
	for _, key := range m.Keys {
		if len(key) != len(m.Key) {
			return errors.New("a key has another number of values than the key has columns")
		}
		for _, value := range key {
			if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
				return errors.New("a key is not UTF-8 text without NUL")
			}
		}
	}
	return nil
}

// Named returns managed rows without their keys, as a report may hold them.
func Named(managed []ManagedRows) []ManagedRows {
	out := make([]ManagedRows, 0, len(managed))
	for _, m := range managed {
		m.Keys = nil
		out = append(out, m)
	}
	return out
}
