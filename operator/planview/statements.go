package planview

import (
	"bufio"
	"io"
	"strings"

	"ptah.run/ptah/operator/plan/report"
)

// SQL writes the statements alone, each as stored and terminated once.
func (v *View) SQL(w io.Writer) error {
	out := bufio.NewWriter(w)
	err := v.each(func(s *report.Statement) error {
		_, err := out.WriteString(s.SQL + terminator(s.SQL) + "\n")
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
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
	_, err := io.Copy(w, v.bytes.Open())
	return err
}
