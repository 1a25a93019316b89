package report

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
)

const (
	mostDots = 60 // samples up to which each is a dot of its own
	bins     = 40 // of a histogram
	plotTop  = 20
	plotLine = 74 // height of the line on which the samples stand
	plotRoom = 96
)

// distribution draws all samples of a target over all cells against its bound: each a dot, or a histogram where they
// are many. What lies beyond the bound is shaded, so that the distance to it is what one sees.
func distribution(item Item) template.HTML {
	samples := item.samples()
	limit, upper := bound(item.Bound)
	if len(samples) == 0 || len(samples) == 1 && limit == 0 {
		return ""
	}
	scale := newScale(samples, limit)
	middle := samples[(len(samples)-1)/2].Value
	name := fmt.Sprintf("%s of %s: smallest %s, median %s, largest %s %s; declared %s", plural(len(samples), "sample"), item.Name, number(samples[0].Value), number(middle),
		number(samples[len(samples)-1].Value), item.Unit, item.Bound)
	var svg strings.Builder
	open(&svg, "dots", plotRoom, name)
	scale.beyond(&svg, limit, upper)
	fmt.Fprintf(&svg, `<line class="grid" x1="0" x2="100%%" y1="%d" y2="%d"/>`, plotLine, plotLine)
	if len(samples) <= mostDots {
		drawDots(&svg, scale, item, samples)
	} else {
		drawBins(&svg, scale, item, samples)
	}
	scale.label(&svg, limit, fmt.Sprintf("declared %s %s", item.Bound, item.Unit))
	fmt.Fprintf(&svg, `<text class="tick" x="0" y="%d">%s</text><text class="tick" x="100%%" y="%d" text-anchor="end">%s %s</text></svg>`,
		plotLine+16, number(scale.from), plotLine+16, number(scale.to), html.EscapeString(string(item.Unit)))
	if len(samples) > 1 {
		fmt.Fprintf(&svg, `<p class="soft">n = %d: smallest %s, median %s, largest %s %s</p>`, len(samples), number(samples[0].Value), number(middle), number(samples[len(samples)-1].Value), html.EscapeString(string(item.Unit)))
	}
	return template.HTML(svg.String())
}

// samples returns the samples of all cells, sorted by value.
func (i Item) samples() []judge.Sample {
	var list []judge.Sample
	for _, result := range i.Results {
		list = append(list, result.Samples...)
	}
	slices.SortStableFunc(list, func(a, b judge.Sample) int { return cmp.Compare(a.Value, b.Value) })
	return list
}

// bound returns the limit and whether it is an upper one.
func bound(b profile.Bound) (limit float64, upper bool) {
	switch {
	case b.AtMost != nil:
		return *b.AtMost, true
	case b.AtLeast != nil:
		return *b.AtLeast, false
	default:
		return 0, true
	}
}

// scale places values in percent.
type scale struct{ from, to float64 }

// newScale reaches from zero to a round value above everything.
func newScale(samples []judge.Sample, limit float64) scale {
	s := scale{from: min(0, limit), to: max(limit, 0)}
	for _, sample := range samples {
		s.from, s.to = min(s.from, sample.Value), max(s.to, sample.Value)
	}
	if s.to <= s.from {
		s.to = s.from + 1
	}
	s.to = s.from + roundUp((s.to-s.from)*1.05)
	return s
}

// roundUp returns the next number of the form 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten.
func roundUp(value float64) float64 {
	power := 1.0
	for value/power >= 10 {
		power *= 10
	}
	for value/power < 1 {
		power /= 10
	}
	for _, step := range []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if value <= step*power {
			return step * power
		}
	}
	return 10 * power
}

func (s scale) at(value float64) float64 {
	return min(max(100*(value-s.from)/(s.to-s.from), 0), 100)
}

func (s scale) beyond(svg *strings.Builder, limit float64, upper bool) {
	left, right := s.at(limit), 100.0
	if !upper {
		left, right = 0, s.at(limit)
	}
	fmt.Fprintf(svg, `<rect class="beyond" x="%.2f%%" width="%.2f%%" y="%d" height="%d"/>`, left, right-left, plotTop, plotLine-plotTop)
	fmt.Fprintf(svg, `<line class="bound" x1="%.2f%%" x2="%.2f%%" y1="%d" y2="%d"/>`, s.at(limit), s.at(limit), plotTop-4, plotLine+4)
}

// label writes beside a value, on the side on which there is room.
func (s scale) label(svg *strings.Builder, value float64, text string) {
	at, anchor := s.at(value), "middle"
	switch {
	case at > 66:
		anchor = "end"
	case at < 34:
		anchor = "start"
	}
	fmt.Fprintf(svg, `<text class="tick bound" x="%.2f%%" y="%d" text-anchor="%s">%s</text>`, at, plotTop-8, anchor, html.EscapeString(text))
}

func drawDots(svg *strings.Builder, scale scale, item Item, samples []judge.Sample) {
	same := map[string]int{}
	for _, sample := range samples {
		at := fmt.Sprintf("%.1f", scale.at(sample.Value))
		lift := min(same[at], 6) * 8
		same[at]++
		class := "dot"
		if !item.Bound.Holds(sample.Value) {
			class = "dot bad"
		}
		if sample.Least != nil && sample.Most != nil {
			fmt.Fprintf(svg, `<line class="range" x1="%.2f%%" x2="%.2f%%" y1="%d" y2="%d"/>`, scale.at(*sample.Least), scale.at(*sample.Most), plotLine-6-lift, plotLine-6-lift)
		}
		fmt.Fprintf(svg, `<circle class="%s" cx="%.2f%%" cy="%d" r="4.5"><title>%s: %s %s</title></circle>`, class, min(max(scale.at(sample.Value), 0.9), 99.1), plotLine-6-lift,
			html.EscapeString(sample.Subject), number(sample.Value), html.EscapeString(string(item.Unit)))
	}
}

func drawBins(svg *strings.Builder, scale scale, item Item, samples []judge.Sample) {
	var counts, bad [bins]int
	for _, sample := range samples {
		bin := min(int(scale.at(sample.Value)*bins/100), bins-1)
		counts[bin]++
		if !item.Bound.Holds(sample.Value) {
			bad[bin]++
		}
	}
	most := slices.Max(counts[:])
	for bin, count := range counts {
		if count == 0 {
			continue
		}
		height := max((plotLine-plotTop-6)*count/most, 2)
		class := "bin"
		if bad[bin] > 0 {
			class = "bin bad"
		}
		from := scale.from + (scale.to-scale.from)*float64(bin)/bins
		fmt.Fprintf(svg, `<rect class="%s" x="%.2f%%" width="%.2f%%" y="%d" height="%d"><title>%d from %s to %s %s</title></rect>`, class, 100*float64(bin)/bins, 100.0/bins-0.3, plotLine-height, height,
			count, number(from), number(from+(scale.to-scale.from)/bins), html.EscapeString(string(item.Unit)))
	}
}
