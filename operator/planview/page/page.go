// Package page writes what a person reads on a terminal of 80 columns.
package page

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width is what a terminal shows in one line.
const Width = 80

// labelWidth is that of the labels of Field.
const labelWidth = 13

// Page writes lines of at most Width columns, but for what Raw gets. Errors of the writer are kept until Flush.
type Page struct {
	out *bufio.Writer
}

// New returns a Page that writes to w, in pieces.
func New(w io.Writer) *Page { return &Page{out: bufio.NewWriter(w)} }

// Flush writes what is held back, and returns the first error of the writer.
func (p *Page) Flush() error { return p.out.Flush() }

// Raw writes text as it is.
func (p *Page) Raw(text string) {
	_, _ = p.out.WriteString(text) // the error comes back from Flush
}

// Line writes a formatted line as it is.
func (p *Page) Line(format string, arguments ...any) { p.Raw(fmt.Sprintf(format, arguments...) + "\n") }

// Field writes a value beside its label.
func (p *Page) Field(label, value string) {
	p.Paragraph(fmt.Sprintf("%-*s", labelWidth, label), value)
}

// Digest writes a value under its label, because both together are wider than a terminal.
func (p *Page) Digest(label, value string) { p.Line("%s\n  %s", label, value) }

// Paragraph wraps words; the lines after the first are indented as deep as the label is wide.
func (p *Page) Paragraph(label, words string) {
	line, indent := label, strings.Repeat(" ", utf8.RuneCountInString(label))
	empty := true
	for word := range strings.FieldsSeq(words) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > Width {
			p.Raw(strings.TrimRight(line, " ") + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	p.Raw(strings.TrimRight(line, " ") + "\n")
}

// Visible writes what a terminal would obey or hide so that it is seen: a text must look like what it is.
func Visible(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && !unicode.Is(unicode.Cf, r) {
			out.WriteRune(r)
			continue
		}
		fmt.Fprintf(&out, `\u{%x}`, r)
	}
	return out.String()
}
