package planview

import (
	"io"
	"strings"

	"ptah.run/ptah/operator/plan/report"
)

// SQL writes the statements alone, each as stored and terminated once, so that the engine's own client reads them as
// they are: psql by itself, mysql by a delimiter of its own around a body with semicolons.
func (v *View) SQL(w io.Writer) error {
	var out strings.Builder
	for _, statement := range v.Document.Statements {
		if v.Document.Dialect == report.DialectMySQL && strings.Contains(strings.TrimRight(statement.SQL, "; \t\r\n"), ";") {
			delimited(&out, statement.SQL)
			continue
		}
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

// delimited writes a statement between lines that the mysql client takes for itself.
func delimited(out *strings.Builder, sql string) {
	delimiter := "//"
	for strings.Contains(sql, delimiter) {
		delimiter += "/"
	}
	out.WriteString("DELIMITER " + delimiter + "\n" + sql + "\n" + delimiter + "\nDELIMITER ;\n")
}

// JSON writes the stored document byte for byte.
func (v *View) JSON(w io.Writer) error {
	_, err := w.Write(v.Data)
	return err
}
