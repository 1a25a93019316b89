package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"time"

	"ptah.run/ptah/qualification/verdict"
)

//go:embed page.html.tmpl
var pageTemplate string

//go:embed page.css
var pageStyle string

var parsed = template.Must(template.New("page").Funcs(template.FuncMap{
	"timeline": timeline,
	"dots":     dots,
	"short":    short,
	"word":     word,
	"moment":   moment,
	"size":     size,
	"platform": platform,
}).Parse(pageTemplate))

type htmlPage struct {
	Page
	Style       template.CSS
	InputDigest string
}

// HTML renders the page as one file that loads nothing: no script, no font, no picture from elsewhere.
func HTML(page Page, inputDigest string) ([]byte, error) {
	var buffer bytes.Buffer
	err := parsed.Execute(&buffer, htmlPage{Page: page, Style: template.CSS(pageStyle), InputDigest: inputDigest})
	if err != nil {
		return nil, fmt.Errorf("render HTML: %w", err)
	}
	return buffer.Bytes(), nil
}

// short keeps the head of a digest: enough to tell digests apart while reading.
func short(digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	if len(hex) > 12 {
		return hex[:12]
	}
	return hex
}

// word is a state as a reader sees it, so that no colour carries meaning alone.
func word(state verdict.State) string {
	switch state {
	case verdict.Pass:
		return "✓ pass"
	case verdict.Fail:
		return "✗ fail"
	case verdict.Void:
		return "∅ void"
	case verdict.NotRun:
		return "– not run"
	default:
		return "? " + string(state)
	}
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

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
