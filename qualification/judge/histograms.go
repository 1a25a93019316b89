package judge

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// histogram is how many observations rose into each bucket, by the upper bound of the bucket. Counts are cumulative, as
// Prometheus keeps them.
type histogram map[float64]float64

// buckets returns the buckets of a metric in one reading.
func buckets(name string, labels map[string]string, values map[string]float64) histogram {
	found := histogram{}
	for text, value := range values {
		metric, with := parseSeries(text)
		if metric != name+"_bucket" || !(series{labels: labels}).picks(with) {
			continue
		}
		bound, err := strconv.ParseFloat(with["le"], 64)
		if err == nil {
			found[bound] += value
		}
	}
	return found
}

// histograms returns what rose in the histogram of each process over the time, from the first reading in each stretch
// of it to the last. A histogram that begins anew or changes its buckets cannot be subtracted.
func (c *court) histograms(target profile.Target, role sample.Role, name string, labels map[string]string, result *measurement) map[string]histogram {
	over := c.allowed(target, result)
	byProcess := map[string]histogram{}
	lives := c.scrapes(target, role, over, result)
	for i, one := range lives {
		if within(one.process.Started, over) && follows(one, lives[:i]) {
			result.problem(verdict.CounterReset, target, "the process %s began anew at %s, and how far its %s had come when it ended was not read", one.name(), clockTime(one.process.Started), name)
		}
		for _, stretch := range over {
			first, last := edges(one.readings, stretch)
			if first == nil {
				continue
			}
			before, after := buckets(name, labels, first.Values), buckets(name, labels, last.Values)
			if within(one.process.Started, []audit.Interval{stretch}) {
				before = histogram{} // all of it rose since the process began
			}
			if byProcess[one.name()] == nil {
				byProcess[one.name()] = histogram{}
			}
			rose, ok := after.since(before)
			if !ok {
				result.problem(verdict.CounterReset, target, "the buckets of %s of the process %s are not those that it had before, or began anew", name, one.name())
				continue
			}
			for bound, count := range rose {
				byProcess[one.name()][bound] += count
			}
		}
	}
	return byProcess
}

// since returns what rose from an earlier reading of the same histogram, and false where the two cannot be subtracted.
func (h histogram) since(before histogram) (histogram, bool) {
	rose := histogram{}
	for bound, count := range h {
		last, had := before[bound]
		if !had && len(before) > 0 || count < last {
			return nil, false
		}
		rose[bound] = count - last
	}
	return rose, len(before) == 0 || len(before) == len(h)
}

// edges returns the first and the last reading in a stretch of time.
func edges(readings []sample.Scrape, stretch audit.Interval) (first, last *sample.Scrape) {
	for i := range readings {
		if at := readings[i].To; at.Before(stretch.From) || at.After(stretch.To) {
			continue
		}
		if first == nil {
			first = &readings[i]
		}
		last = &readings[i]
	}
	return first, last
}

// count is how many observations a histogram holds: those of its largest bucket.
func (h histogram) count() int {
	most := 0.0
	for _, count := range h {
		most = max(most, count)
	}
	return int(most)
}

// quantile returns the bounds of the bucket in which a statistic lies. Most is infinite in the last bucket.
func (h histogram) quantile(kind profile.Statistic) (least, most float64) {
	percent, isPercentile := kind.Percentile()
	if !isPercentile {
		percent = 100
	}
	rank := math.Ceil(float64(percent) * float64(h.count()) / 100)
	if kind == profile.Min {
		rank = 1
	}
	for _, bound := range slices.Sorted(maps.Keys(h)) {
		if h[bound] >= rank {
			return least, bound
		}
		least = bound
	}
	return least, math.Inf(1)
}

// distributed makes one sample of a histogram: the bucket in which the statistic of the target lies.
func (h histogram) distributed(target profile.Target, subject string, over audit.Interval) Sample {
	least, most := h.quantile(target.Statistic)
	one := Sample{Subject: subject, From: over.From, To: over.To, Value: most, Least: &least, Most: &most, count: h.count(), above: true}
	if math.IsInf(most, 1) {
		one.Value, one.Most, one.Open = least, nil, true
	}
	return one
}

// queueDelay returns how long work waited in the queues of the managers, all of them together unless they are taken
// apart.
func (c *court) queueDelay(target profile.Target) measurement {
	var result measurement
	byProcess := c.histograms(target, sample.Manager, "workqueue_queue_duration_seconds", nil, &result)
	return c.distribution(target, byProcess, "all managers", result)
}

// admissionLatency returns how long API servers waited for the webhooks of the operator, all servers together unless
// they are taken apart.
func (c *court) admissionLatency(target profile.Target) measurement {
	var result measurement
	ours := map[string]string{"name": "*.operator.ptah.run"}
	byProcess := c.histograms(target, sample.APIServer, "apiserver_admission_webhook_admission_duration_seconds", ours, &result)
	return c.distribution(target, byProcess, "all API servers", result)
}

func (c *court) distribution(target profile.Target, byProcess map[string]histogram, together string, result measurement) measurement {
	if len(byProcess) == 0 {
		return result
	}
	if target.Per == "" {
		all := histogram{}
		for _, process := range slices.Sorted(maps.Keys(byProcess)) {
			if len(all) > 0 && !slices.Equal(slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(byProcess[process]))) && len(byProcess[process]) > 0 {
				result.problem(verdict.Undecided, target, "the process %s has other buckets than the rest, so their observations cannot be joined", process)
			}
			for bound, count := range byProcess[process] {
				all[bound] += count
			}
		}
		byProcess = map[string]histogram{together: all}
	}
	whole, _ := c.span()
	for _, process := range slices.Sorted(maps.Keys(byProcess)) {
		switch one := byProcess[process]; {
		case len(one) == 0:
			result.problem(verdict.SeriesMissing, target, "%s reported no buckets", process)
		case one.count() > 0:
			result.samples = append(result.samples, one.distributed(target, process, whole))
		default:
			result.problem(verdict.NoSamples, target, "%s observed nothing", process)
		}
	}
	return result
}
