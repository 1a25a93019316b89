package judge

import "strings"

// series picks time series by the name of their metric and by what their labels must be.
type series struct {
	name    string
	implied string            // a metric that every process reports that can report this one; then absence is zero
	labels  map[string]string // label to value; a value that begins with * is a suffix
}

// sum adds up the series of a reading that are picked, and says whether the process reports the metric at all.
func (s series) sum(values map[string]float64) (float64, bool) {
	sum, reported := 0.0, false
	for text, value := range values {
		name, labels := parseSeries(text)
		if name == s.name {
			reported = true
			if s.picks(labels) {
				sum += value
			}
		}
		reported = reported || s.implied != "" && name == s.implied
	}
	return sum, reported
}

func (s series) picks(labels map[string]string) bool {
	for label, want := range s.labels {
		if suffix, isSuffix := strings.CutPrefix(want, "*"); isSuffix && strings.HasSuffix(labels[label], suffix) {
			continue
		}
		if labels[label] != want {
			return false
		}
	}
	return true
}

// parseSeries takes a series apart as Prometheus writes it: name{label="value",...}.
func parseSeries(text string) (string, map[string]string) {
	name, rest, labelled := strings.Cut(text, "{")
	if !labelled {
		return text, nil
	}
	labels := map[string]string{}
	for rest = strings.TrimSuffix(rest, "}"); rest != ""; {
		label, quoted, ok := strings.Cut(rest, `="`)
		if !ok {
			break
		}
		value, after := unquote(quoted)
		labels[strings.TrimLeft(label, ", ")] = value
		rest = after
	}
	return name, labels
}

// unquote reads up to the closing quote of a label value and returns what is behind it.
func unquote(text string) (string, string) {
	var value strings.Builder
	for i := 0; i < len(text); i++ {
		switch at := text[i]; {
		case at == '"':
			return value.String(), text[i+1:]
		case at != '\\' || i+1 == len(text):
			value.WriteByte(at)
		default:
			i++
			value.WriteString(strings.ReplaceAll(text[i:i+1], "n", "\n"))
		}
	}
	return value.String(), ""
}
