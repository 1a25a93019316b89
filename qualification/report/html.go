package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"strings"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/verdict"
)

//go:embed page.html.tmpl
var pageTemplate string

//go:embed page.css
var pageStyle string

var parsed = template.Must(template.New("page").Funcs(template.FuncMap{
	"timeline":     timeline,
	"runline":      runline,
	"distribution": distribution,
	"short":        short,
	"word":         word,
	"mark":         mark,
	"moment":       moment,
	"size":         size,
	"platform":     platform,
	"driver":       driver,
	"plural":       plural,
	"breakable":    breakable,
}).Parse(pageTemplate))

// Numbers of things beyond which a page shows the rest only on request.
const (
	mostConcerns  = 8
	openCells     = 2 // cells that are open from the start
	openRunline   = 12
	namedInGroup  = 3
	openFileLists = 1
)

// htmlPage is the page with what only the HTML form needs.
type htmlPage struct {
	Page
	Style       template.CSS
	InputDigest string

	rows    map[string][]Square
	anchors map[string]string
}

// HTML renders the page as one file that loads nothing: no script, no font, no picture from elsewhere.
func HTML(page Page, inputDigest string) ([]byte, error) {
	view := htmlPage{Page: page, Style: template.CSS(pageStyle), InputDigest: inputDigest, rows: page.squares(), anchors: map[string]string{}}
	for i, cell := range page.Cells {
		view.anchors[cell.Key] = fmt.Sprintf("cell-%d", i+1)
	}
	var buffer bytes.Buffer
	if err := parsed.Execute(&buffer, view); err != nil {
		return nil, fmt.Errorf("render HTML: %w", err)
	}
	return buffer.Bytes(), nil
}

// Anchor is the id of a cell on the page.
func (p htmlPage) Anchor(cell string) string { return p.anchors[cell] }

// Row is the row of a cell in the overview.
func (p htmlPage) Row(cell string) []Square { return p.rows[cell] }

// Columns are the requirements in the overview.
func (p htmlPage) Columns() []Requirement { return p.assessed() }

// Concerns are the first things that need attention.
func (p htmlPage) Concerns() []Concern {
	list := p.concerns()
	return list[:min(len(list), mostConcerns)]
}

// More is the number of concerns beyond the first.
func (p htmlPage) More() int { return max(len(p.concerns())-mostConcerns, 0) }

// Many says whether there are so many cells that each is closed at first.
func (p htmlPage) Many() bool { return len(p.Cells) > openCells }

// ManyLines says whether the run's timeline is closed at first.
func (p htmlPage) ManyLines() bool { return len(p.Cells) > openRunline }

// OpenFiles says whether lists of files are open at first.
func (p htmlPage) OpenFiles() bool { return len(p.Cells) < openFileLists }

// Troubled and Passed are for the template.
func (i Item) Troubled() []Group { return i.troubled() }

// Passed returns the results that are a pass.
func (i Item) Passed() []Result { return i.passed() }

// Only is the result of an item that one cell shows.
func (i Item) Only() *Result {
	if len(i.Results) != 1 {
		return nil
	}
	return &i.Results[0]
}

// First and Rest split the cells of a group into those that are named at once and the others.
func (g Group) First() []Result { return g.Results[:min(len(g.Results), namedInGroup)] }

// Rest returns the cells that are named on request.
func (g Group) Rest() []Result { return g.Results[min(len(g.Results), namedInGroup):] }

// Sample returns one result of a group, all of which read the same.
func (g Group) Sample() Result { return g.Results[0] }

// mark is the sign of a state, so that no colour carries meaning alone.
func mark(state verdict.State) string {
	switch state {
	case verdict.Pass:
		return "✓"
	case verdict.Fail:
		return "✗"
	case verdict.Void:
		return "∅"
	case verdict.NotRun:
		return "–"
	default:
		return "?"
	}
}

// word is a state as a reader sees it.
func word(state verdict.State) string {
	if state == verdict.NotRun {
		return mark(state) + " not run"
	}
	return mark(state) + " " + string(state)
}

// breakable lets a key break after its dots, where it has to.
func breakable(key string) template.HTML {
	return template.HTML(strings.ReplaceAll(html.EscapeString(key), ".", ".<wbr>"))
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func size(bytes int64) string {
	switch {
	case bytes >= 10<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 10<<10:
		return fmt.Sprintf("%d KiB", bytes>>10)
	default:
		return fmt.Sprintf("%d bytes", bytes)
	}
}

func platform(cell Cell) string {
	if cell.Lab.Platform == "" {
		return "unknown"
	}
	if cell.Lab.NativePlatform {
		return cell.Lab.Platform + ", native"
	}
	return cell.Lab.Platform + ", emulated"
}

// Whole says whether a file of evidence is a stream that was closed.
func (c Cell) Whole(file evidence.Entry) bool { return file.Complete != nil }
