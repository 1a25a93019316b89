package planview

import (
	"io"
	"strings"
)

// SQL writes the statements alone, each as stored and terminated once.
func (v *View) SQL(w io.Writer) error {
	var out strings.Builder
	for _, statement := range v.Document.Statements {
		out.WriteString(statement.SQL)
		out.WriteString(terminator(statement.SQL))
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// terminator ends a statement without becoming a part of a comment in its last line.
func terminator(sql string) string {
	last := sql[strings.LastIndexByte(sql, '\n')+1:]
	switch {
	case strings.Contains(last, "--") || strings.Contains(last, "#"):
		return "\n;"
	case strings.HasSuffix(strings.TrimRight(sql, " \t\r\n"), ";"):
		return ""
	}
	return ";"
}

// JSON writes the stored document byte for byte.
func (v *View) JSON(w io.Writer) error {
	_, err := w.Write(v.Data)
	return err
}
