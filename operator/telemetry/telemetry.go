// Package telemetry holds the manager's own metrics. Every label has a closed set of values, so that no name, message
// or number of resources can make a series. A counter moves when a transition happens and never because a status was
// read again.
package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// FamilySchema is the label value of PtahSchema.
const FamilySchema = "schema"

// Results of a reconciliation.
const (
	ResultSuccess = "success"
	ResultError   = "error"
)

// Outcomes. Each metric documents which it uses.
const (
	OutcomeRequired  = "required"
	OutcomeAccepted  = "accepted"
	OutcomeStale     = "stale"
	OutcomeStarted   = "started"
	OutcomeCompleted = "completed"
	OutcomeUncertain = "uncertain"
	OutcomeRefused   = "refused"
	OutcomeFailed    = "failed"
	OutcomeDrift     = "drift"
	OutcomeInSync    = "in-sync"
)

// Categories of failures.
const (
	CategoryInfrastructure = "infrastructure"
	CategoryConfiguration  = "configuration"
	CategoryOperation      = "operation"
	CategoryStaleInput     = "stale-input"
)

// Metrics is the manager's set.
type Metrics struct {
	reconciliations *prometheus.CounterVec
	drift           *prometheus.CounterVec
	plans           *prometheus.CounterVec
	approvals       *prometheus.CounterVec
	applies         *prometheus.CounterVec
	durations       *prometheus.HistogramVec
	failures        *prometheus.CounterVec
}

// New registers the metrics. It panics when they are registered twice, like every Prometheus registration.
func New(registerer prometheus.Registerer) *Metrics {
	described := map[string]Metric{}
	for _, metric := range Catalogue() {
		described[metric.Name] = metric
	}
	counter := func(name string) *prometheus.CounterVec {
		metric := described[name]
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: metric.Help}, metric.names())
		registerer.MustRegister(vec)
		return vec
	}
	durations := described[metricDurations]
	m := &Metrics{
		reconciliations: counter(metricReconciliations),
		drift:           counter(metricDrift),
		plans:           counter(metricPlans),
		approvals:       counter(metricApprovals),
		applies:         counter(metricApplies),
		failures:        counter(metricFailures),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: metricDurations, Help: durations.Help, Buckets: []float64{1, 2, 5, 10, 20, 40, 60, 120, 300, 600, 1800, 3600},
		}, durations.names()),
	}
	registerer.MustRegister(m.durations)
	return m
}

// Reconciled counts one pass.
func (m *Metrics) Reconciled(family string, err error) {
	result := ResultSuccess
	if err != nil {
		result = ResultError
	}
	m.reconciliations.WithLabelValues(family, result).Inc()
}

// Observed counts one completed reading: OutcomeDrift or OutcomeInSync.
func (m *Metrics) Observed(engine, outcome string) { m.drift.WithLabelValues(engine, outcome).Inc() }

// Published counts one plan.
func (m *Metrics) Published(family, engine string, destructive bool) {
	value := "false"
	if destructive {
		value = "true"
	}
	m.plans.WithLabelValues(family, engine, value).Inc()
}

// Approval counts OutcomeRequired, OutcomeAccepted or OutcomeStale.
func (m *Metrics) Approval(family, outcome string) {
	m.approvals.WithLabelValues(family, outcome).Inc()
}

// Apply counts OutcomeStarted, OutcomeCompleted, OutcomeRefused or OutcomeUncertain.
func (m *Metrics) Apply(family, outcome string) { m.applies.WithLabelValues(family, outcome).Inc() }

// Operation records how long an operation took: OutcomeCompleted, OutcomeFailed or OutcomeUncertain.
func (m *Metrics) Operation(family, operation, outcome string, took time.Duration) {
	m.durations.WithLabelValues(family, operation, outcome).Observe(took.Seconds())
}

// Failed counts a failure of a stage, which is a step name or "controller".
func (m *Metrics) Failed(family, stage, category string) {
	m.failures.WithLabelValues(family, stage, category).Inc()
}
