package planview

import (
	"bufio"
	"io"
	"strings"

	"ptah.run/ptah/operator/plan/report"
)

// SQL writes the statements alone, each as stored and terminated once, so that the engine's own client reads them as
// they are: psql by itself, mysql by a delimiter of its own around a body with semicolons.
func (v *View) SQL(w io.Writer) error {
	out := bufio.NewWriter(w)
	err := v.each(func(s *report.Statement) error {
		if v.Header.Dialect == report.DialectMySQL && strings.Contains(strings.TrimRight(s.SQL, "; \t\r\n"), ";") {
			return delimited(out, s.SQL)
		}
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

// delimited writes a statement between lines that the mysql client takes for itself.
func delimited(out *bufio.Writer, sql string) error {
	delimiter := "//"
	for strings.Contains(sql, delimiter) {
		delimiter += "/"
	}
	_, err := out.WriteString("DELIMITER " + delimiter + "\n" + sql + "\n" + delimiter + "\nDELIMITER ;\n")
	return err
}

// JSON writes the stored document byte for byte.
func (v *View) JSON(w io.Writer) error {
	_, err := io.Copy(w, v.bytes.Open())
	return err
}
