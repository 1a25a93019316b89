package report

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"time"

	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
)

// The pictures use percentages across and pixels down, and no view box: text keeps its size on a phone.
const (
	rowHeight = 46
	axisRoom  = 26
)

// timeline draws the scenarios of a cell one below the other on one time axis, with measured intervals as a lower
// band and witnesses and failed assertions as marks.
func timeline(bars []Bar) template.HTML {
	if len(bars) == 0 {
		return ""
	}
	from, to := bars[0].From, bars[0].To
	for _, bar := range bars {
		if bar.From.Before(from) {
			from = bar.From
		}
		if bar.To.After(to) {
			to = bar.To
		}
	}
	axis := axis{from: from, length: max(to.Sub(from), time.Millisecond)}
	height := axisRoom + rowHeight*len(bars)
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg class="timeline" width="100%%" height="%d" role="img" aria-label="Timeline of %d scenarios over %s">`, height, len(bars), elapsed(axis.length))
	axis.ticks(&svg, height)
	for i, bar := range bars {
		drawBar(&svg, axis, bar, axisRoom+rowHeight*i)
	}
	svg.WriteString(`</svg>`)
	return template.HTML(svg.String())
}

type axis struct {
	from   time.Time
	length time.Duration
}

func (a axis) at(t time.Time) float64 {
	return min(max(100*float64(t.Sub(a.from))/float64(a.length), 0), 100)
}

func (a axis) ticks(svg *strings.Builder, height int) {
	for i := range 5 {
		anchor := [5]string{"start", "middle", "middle", "middle", "end"}[i]
		fmt.Fprintf(svg, `<line class="grid" x1="%d%%" x2="%d%%" y1="%d" y2="%d"/>`, 25*i, 25*i, axisRoom-6, height)
		fmt.Fprintf(svg, `<text class="tick" x="%d%%" y="13" text-anchor="%s">%s</text>`, 25*i, anchor, elapsed(a.length*time.Duration(i)/4))
	}
}

func drawBar(svg *strings.Builder, axis axis, bar Bar, top int) {
	left := axis.at(bar.From)
	width := max(axis.at(bar.To)-left, 0.4)
	fmt.Fprintf(svg, `<text class="name" x="0" y="%d">%s</text>`, top+13, html.EscapeString(bar.Scenario))
	fmt.Fprintf(svg, `<rect class="bar %s" x="%.2f%%" width="%.2f%%" y="%d" height="16" rx="3"><title>%s: %s, %s</title></rect>`, bar.State, left, width, top+19,
		html.EscapeString(bar.Scenario), bar.State, elapsed(bar.To.Sub(bar.From)))
	for _, measured := range bar.Measured {
		begin := axis.at(measured.From)
		fmt.Fprintf(svg, `<rect class="measured" x="%.2f%%" width="%.2f%%" y="%d" height="4"><title>%s %s, %s</title></rect>`, begin, max(axis.at(measured.To)-begin, 0.4), top+37,
			html.EscapeString(measured.Population), html.EscapeString(measured.Subject), elapsed(measured.To.Sub(measured.From)))
	}
	for _, mark := range bar.Marks {
		fmt.Fprintf(svg, `<circle class="mark %s" cx="%.2f%%" cy="%d" r="4.5"><title>%s: %s</title></circle>`, mark.Kind, axis.at(mark.At), top+27, mark.Kind, html.EscapeString(mark.Text))
	}
}

// elapsed writes a length of time with the precision a reader can use.
func elapsed(d time.Duration) string {
	switch {
	case d == 0:
		return "0 s"
	case d >= time.Minute:
		d = d.Round(time.Second)
		return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// dots draws each sample of a target as a dot on one line, with the bound as a rule across.
func dots(set SampleSet) template.HTML {
	top := set.Bound
	for _, sample := range set.Samples {
		top = max(top, sample.Value)
	}
	if top <= 0 {
		top = 1
	}
	top *= 1.08
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg class="dots" width="100%%" height="62" role="img" aria-label="%d samples of %s, bound %s %s">`, len(set.Samples), html.EscapeString(set.Target), profile.Number(set.Bound), set.Unit)
	svg.WriteString(`<line class="grid" x1="0" x2="100%" y1="32" y2="32"/><text class="tick" x="0" y="56">0</text>`)
	bound := 100 * set.Bound / top
	anchor := "middle"
	switch {
	case bound > 75:
		anchor = "end"
	case bound < 25:
		anchor = "start"
	}
	fmt.Fprintf(&svg, `<line class="bound" x1="%.2f%%" x2="%.2f%%" y1="12" y2="44"/><text class="tick bound" x="%.2f%%" y="58" text-anchor="%s">bound %s %s</text>`, bound, bound, bound, anchor, profile.Number(set.Bound), set.Unit)
	for i, sample := range set.Samples {
		fmt.Fprintf(&svg, `<circle class="dot" cx="%.2f%%" cy="%d" r="5"><title>%s: %s %s</title></circle>`, max(100*sample.Value/top, 1.5), 32-spread(set.Samples, i), html.EscapeString(sample.Subject), profile.Number(sample.Value), set.Unit)
	}
	svg.WriteString(`</svg>`)
	return template.HTML(svg.String())
}

// spread lifts a dot for each earlier sample of the same value, so that equal samples stay countable.
func spread(samples []judge.Sample, i int) int {
	lift := 0
	for _, earlier := range samples[:i] {
		if earlier.Value == samples[i].Value && lift < 18 {
			lift += 6
		}
	}
	return lift
}
