package judge

import (
	"slices"

	"ptah.run/ptah/qualification/profile"
)

// statistic makes one number of values, of which there is at least one. Percentiles are by nearest rank: the
// smallest observed value that at least that share of the samples does not exceed.
func statistic(kind profile.Statistic, values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	switch kind {
	case profile.Min:
		return values[0]
	case profile.Sum:
		return sum
	case profile.Count:
		return float64(len(values))
	case profile.P50, profile.P95, profile.P99:
		percent, _ := kind.Percentile()
		rank := (percent*len(values) + 99) / 100
		return values[rank-1]
	default:
		return values[len(values)-1]
	}
}
