package report

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"time"
)

// The pictures use percentages across and pixels down, and no view box: text keeps its size on a phone.
const (
	rowHeight     = 46
	runlineHeight = 28
	axisRoom      = 26
	longestLabel  = 48 // characters of a name in a picture; the whole name is in its title
)

// span is a stretch of time that grows.
type span struct{ from, to time.Time }

func (s *span) add(from, to time.Time) {
	if s.from.IsZero() || from.Before(s.from) {
		s.from = from
	}
	if to.After(s.to) {
		s.to = to
	}
}

func (s span) axis() axis { return axis{from: s.from, length: max(s.to.Sub(s.from), time.Millisecond)} }

// axis places moments in percent.
type axis struct {
	from   time.Time
	length time.Duration
}

func (a axis) at(t time.Time) float64 {
	return min(max(100*float64(t.Sub(a.from))/float64(a.length), 0), 100)
}

// width is the width of a stretch that stays visible and inside.
func (a axis) width(from, to time.Time) (left, width float64) {
	left = min(a.at(from), 99.6)
	return left, min(max(a.at(to)-left, 0.4), 100-left)
}

func (a axis) ticks(svg *strings.Builder, height int) {
	for i := range 5 {
		anchor := [5]string{"start", "middle", "middle", "middle", "end"}[i]
		fmt.Fprintf(svg, `<line class="grid" x1="%d%%" x2="%d%%" y1="%d" y2="%d"/>`, 25*i, 25*i, axisRoom-6, height)
		class := [5]string{"tick", "tick minor", "tick", "tick minor", "tick"}[i] // minor ones have no room on a phone
		fmt.Fprintf(svg, `<text class="%s" x="%d%%" y="13" text-anchor="%s">%s</text>`, class, 25*i, anchor, elapsed(a.length*time.Duration(i)/4))
	}
}

// open begins a picture with its name for those who do not see it.
func open(svg *strings.Builder, class string, height int, name string) {
	name = html.EscapeString(name)
	fmt.Fprintf(svg, `<svg class="%s" width="100%%" height="%d" role="img" aria-label="%s"><title>%s</title>`, class, height, name, name)
}

// timeline draws the scenarios of a cell one below the other on one time axis, with measured intervals as a lower
// band and witnesses and failed assertions as marks.
func timeline(bars []Bar) template.HTML {
	if len(bars) == 0 {
		return ""
	}
	var whole span
	for _, bar := range bars {
		whole.add(bar.From, bar.To)
	}
	axis := whole.axis()
	height := axisRoom + rowHeight*len(bars)
	var svg strings.Builder
	open(&svg, "timeline", height, fmt.Sprintf("Timeline of %s over %s", plural(len(bars), "scenario"), elapsed(axis.length)))
	axis.ticks(&svg, height)
	for i, bar := range bars {
		drawBar(&svg, axis, bar, axisRoom+rowHeight*i)
	}
	svg.WriteString(`</svg>`)
	return template.HTML(svg.String())
}

func drawBar(svg *strings.Builder, axis axis, bar Bar, top int) {
	left, width := axis.width(bar.From, bar.To)
	label(svg, bar.Scenario, top+13)
	fmt.Fprintf(svg, `<rect class="bar %s" x="%.2f%%" width="%.2f%%" y="%d" height="16" rx="3"><title>%s: %s, %s</title></rect>`, html.EscapeString(string(bar.State)), left, width, top+19,
		html.EscapeString(bar.Scenario), html.EscapeString(string(bar.State)), elapsed(bar.To.Sub(bar.From)))
	for _, measured := range bar.Measured {
		begin, length := axis.width(measured.From, measured.To)
		fmt.Fprintf(svg, `<rect class="measured" x="%.2f%%" width="%.2f%%" y="%d" height="4"><title>%s %s, %s</title></rect>`, begin, length, top+37,
			html.EscapeString(measured.Population), html.EscapeString(measured.Subject), elapsed(measured.To.Sub(measured.From)))
	}
	for _, mark := range bar.Marks {
		fmt.Fprintf(svg, `<circle class="mark %s" cx="%.2f%%" cy="%d" r="4.5"><title>%s: %s</title></circle>`, mark.Kind, axis.at(mark.At), top+27, mark.Kind, html.EscapeString(mark.Text))
	}
}

// label writes a name, cut where it would not fit on a phone.
func label(svg *strings.Builder, name string, y int) {
	shown, title := name, ""
	if characters := []rune(name); len(characters) > longestLabel {
		shown, title = string(characters[:longestLabel-1])+"…", "<title>"+html.EscapeString(name)+"</title>"
	}
	fmt.Fprintf(svg, `<text class="name" x="0" y="%d">%s%s</text>`, y, html.EscapeString(shown), title)
}

// runline draws the cells of a run one below the other on one time axis. Cells without a timeline have no line.
func runline(cells []Cell) template.HTML {
	type line struct {
		cell  Cell
		whole span
	}
	var lines []line
	var whole span
	for _, cell := range cells {
		if len(cell.Timeline) == 0 {
			continue
		}
		l := line{cell: cell}
		for _, bar := range cell.Timeline {
			l.whole.add(bar.From, bar.To)
		}
		whole.add(l.whole.from, l.whole.to)
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		return ""
	}
	axis := whole.axis()
	height := axisRoom + runlineHeight*len(lines)
	var svg strings.Builder
	open(&svg, "timeline", height, fmt.Sprintf("Timeline of %s over %s", plural(len(lines), "cell"), elapsed(axis.length)))
	axis.ticks(&svg, height)
	for i, l := range lines {
		top := axisRoom + runlineHeight*i
		left, width := axis.width(l.whole.from, l.whole.to)
		label(&svg, l.cell.Key, top+11)
		fmt.Fprintf(&svg, `<rect class="bar %s" x="%.2f%%" width="%.2f%%" y="%d" height="8" rx="2"><title>%s: %s, %s</title></rect>`, html.EscapeString(string(l.cell.Verdict.State)), left, width, top+15,
			html.EscapeString(l.cell.Key), html.EscapeString(string(l.cell.Verdict.State)), elapsed(l.whole.to.Sub(l.whole.from)))
	}
	svg.WriteString(`</svg>`)
	return template.HTML(svg.String())
}

// elapsed writes a length of time with the precision a reader can use.
func elapsed(d time.Duration) string {
	switch {
	case d == 0:
		return "0 s"
	case d >= time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d:%02d h", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		d = d.Round(time.Second)
		return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}
