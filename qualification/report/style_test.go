package report_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/report"
)

var (
	headings = regexp.MustCompile(`<h([1-6])`)
	colour   = regexp.MustCompile(`--([a-z-]+):#([0-9a-f]{6})`)
	ids      = regexp.MustCompile(` id="([^"]+)"`)
	links    = regexp.MustCompile(`href="#([^"]+)"`)
	pictures = regexp.MustCompile(`<svg [^>]*>(<title>)?`)
)

func everyPage(t *testing.T) map[string]report.Page {
	t.Helper()
	return map[string]report.Page{"passing": page(t, dossiertest.Passing(t)), "troubled": page(t, troubled(t)), "production": production(t), "large": large(t, 100)}
}

func TestHeadingsGoDownOneLevelAtATime(t *testing.T) {
	for name, p := range everyPage(t) {
		last := 0
		for _, found := range headings.FindAllStringSubmatch(render(t, p)[report.HTMLName], -1) {
			level, _ := strconv.Atoi(found[1])
			if level > last+1 || last > 0 && level == 1 {
				t.Errorf("%s: a heading of level %d follows one of level %d", name, level, last)
			}
			last = level
		}
		if last == 0 {
			t.Errorf("%s: there is no heading", name)
		}
	}
}

func TestEveryLinkLeadsSomewhereAndEveryPictureHasAName(t *testing.T) {
	for name, p := range everyPage(t) {
		text := render(t, p)[report.HTMLName]
		known := map[string]int{}
		for _, found := range ids.FindAllStringSubmatch(text, -1) {
			known[found[1]]++
			if known[found[1]] > 1 {
				t.Errorf("%s: the id %s is there twice", name, found[1])
			}
		}
		for _, found := range links.FindAllStringSubmatch(text, -1) {
			if known[found[1]] == 0 {
				t.Errorf("%s: nothing has the id %s", name, found[1])
			}
		}
		for _, picture := range pictures.FindAllString(text, -1) {
			if !strings.Contains(picture, `role="img"`) || !strings.Contains(picture, `aria-label="`) || !strings.HasSuffix(picture, "<title>") {
				t.Errorf("%s: a picture has no name: %s", name, picture)
			}
		}
		if !strings.Contains(text, "<svg ") {
			t.Errorf("%s: there is no picture", name)
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf%") {
			t.Errorf("%s: a coordinate is no number", name)
		}
	}
}

// TestColoursCanBeRead holds every colour that text has against every ground it stands on, in both schemes. The limit
// is that of WCAG 2 for text of usual size.
func TestColoursCanBeRead(t *testing.T) {
	style, err := os.ReadFile("page.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, found := strings.Cut(string(style), "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("there is no dark scheme")
	}
	dark, _, _ = strings.Cut(dark, "\n")
	light, _, _ = strings.Cut(light, "\n")
	for scheme, text := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]float64{}
		for _, c := range colour.FindAllStringSubmatch(text, -1) {
			colours[c[1]] = luminance(t, c[2])
		}
		for _, pair := range []string{"ink paper", "ink card", "soft paper", "soft card", "pass pass-bg", "fail fail-bg", "fail paper", "fail card", "open open-bg", "none none-bg", "pass card", "open card", "none card", "ink none-bg"} {
			front, ground, _ := strings.Cut(pair, " ")
			a, b := colours[front], colours[ground]
			if contrast := (max(a, b) + 0.05) / (min(a, b) + 0.05); contrast < 4.5 {
				t.Errorf("%s: %s on %s has the contrast %.2f", scheme, front, ground, contrast)
			}
		}
		if len(colours) != 14 {
			t.Errorf("%s: %d colours", scheme, len(colours))
		}
	}
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(value) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// TestPreview writes pages to look at in a browser into the folder that PTAH_TEST_PREVIEW names.
func TestPreview(t *testing.T) {
	dir := os.Getenv("PTAH_TEST_PREVIEW")
	if dir == "" {
		t.Skip("not-run: PTAH_TEST_PREVIEW names no folder for pages to look at")
	}
	pages := everyPage(t)
	pages["evil"] = evilPage(evil[0] + evil[7])
	for name, p := range pages {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.html", name)), []byte(render(t, p)[report.HTMLName]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
