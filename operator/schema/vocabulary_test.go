package schema

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/telemetry"
)

// spoken is every reason that a test without random faults wrote, by condition. A whole run must say all that the
// vocabulary promises: what is documented and never said is either dead or untested.
var spoken = struct {
	sync.Mutex
	pairs  map[spokenPair]bool
	events map[string]bool
}{pairs: map[spokenPair]bool{}, events: map[string]bool{}}

type spokenPair struct {
	ptahv1.ConditionOf
	reason string
}

func conditionsOf(object client.Object) (string, []metav1.Condition) {
	switch object := object.(type) {
	case *ptahv1.PtahSchema:
		return "PtahSchema", object.Status.Conditions
	case *ptahv1.PtahSchemaPlan:
		return "PtahSchemaPlan", object.Status.Conditions
	case *ptahv1.PtahSchemaApproval:
		return "PtahSchemaApproval", object.Status.Conditions
	}
	return "", nil
}

// documented is where the vocabulary says that a reason stands.
var documented = sync.OnceValue(func() map[spokenPair]bool {
	pairs := map[spokenPair]bool{}
	for _, entry := range ptahv1.Vocabulary() {
		for _, condition := range entry.Conditions {
			pairs[spokenPair{condition, string(entry.Reason)}] = true
		}
	}
	return pairs
})

// hear fails a test that writes a reason where the vocabulary does not place it.
func (w *world) hear(object client.Object) {
	kind, conditions := conditionsOf(object)
	spoken.Lock()
	defer spoken.Unlock()
	for _, c := range conditions {
		pair := spokenPair{ptahv1.ConditionOf{Kind: kind, Type: c.Type}, c.Reason}
		if !documented()[pair] {
			w.t.Errorf("the vocabulary does not place reason %s in condition %s of %s (%s)", c.Reason, c.Type, kind, c.Message)
		}
		if w.fault == nil {
			spoken.pairs[pair] = true
		}
	}
}

func hearEvent(reason string) {
	spoken.Lock()
	defer spoken.Unlock()
	spoken.events[reason] = true
}

// unspoken is what the vocabulary promises and no test said. It is empty when not all tests ran.
func unspoken() []string {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if set := flag.Lookup(name); set != nil && set.Value.String() != "" {
			return nil
		}
	}
	missing := []string{}
	for pair := range documented() {
		if !spoken.pairs[pair] {
			missing = append(missing, fmt.Sprintf("reason %s in condition %s of %s", pair.reason, pair.Type, pair.Kind))
		}
	}
	known := []string{}
	for _, entry := range ptahv1.Events() {
		known = append(known, string(entry.Reason))
		if !spoken.events[string(entry.Reason)] {
			missing = append(missing, "event "+string(entry.Reason))
		}
	}
	for reason := range spoken.events {
		if !slices.Contains(known, reason) {
			missing = append(missing, "an event outside the vocabulary: "+reason)
		}
	}
	slices.Sort(missing)
	return missing
}

// measured is a registry whose series are compared with the catalogue of metrics when the test ends.
func (w *world) measured() *telemetry.Metrics {
	registry := prometheus.NewRegistry()
	metrics := telemetry.New(registry)
	if w.fault == nil {
		w.t.Cleanup(func() {
			for _, problem := range outsideCatalogue(registry) {
				w.t.Error(problem)
			}
		})
	}
	return metrics
}

func outsideCatalogue(registry *prometheus.Registry) []string {
	families, err := registry.Gather()
	if err != nil {
		return []string{err.Error()}
	}
	problems := []string{}
	for _, family := range families {
		at := slices.IndexFunc(telemetry.Catalogue(), func(m telemetry.Metric) bool { return m.Name == family.GetName() })
		if at < 0 {
			problems = append(problems, family.GetName()+" is not in the catalogue of metrics")
			continue
		}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if !slices.Contains(telemetry.Catalogue()[at].Values(label.GetName()), label.GetValue()) {
					problems = append(problems, strings.Join([]string{family.GetName(), label.GetName(), label.GetValue(), "is not in the catalogue of metrics"}, " "))
				}
			}
		}
	}
	return problems
}
