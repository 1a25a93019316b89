package telemetry

const (
	metricReconciliations = "ptah_operator_reconciliations_total"
	metricDrift           = "ptah_operator_drift_observations_total"
	metricPlans           = "ptah_operator_plans_total"
	metricApprovals       = "ptah_operator_approvals_total"
	metricApplies         = "ptah_operator_applies_total"
	metricFailures        = "ptah_operator_failures_total"
	metricDurations       = "ptah_operator_operation_duration_seconds"
)

// Label is a label and its closed set of values.
type Label struct {
	Name   string
	Values []string
}

// Metric is what the catalogue says of a metric.
type Metric struct {
	Name string
	// Type is the Prometheus type.
	Type string
	// Help says when it moves.
	Help   string
	Labels []Label
}

func (m Metric) names() []string {
	names := make([]string, len(m.Labels))
	for i, label := range m.Labels {
		names[i] = label.Name
	}
	return names
}

// Values is the closed set of a label, nil where the metric has no such label.
func (m Metric) Values(label string) []string {
	for _, own := range m.Labels {
		if own.Name == label {
			return own.Values
		}
	}
	return nil
}

// Catalogue is every metric of the manager itself, in alphabetical order of the names.
func Catalogue() []Metric {
	family := Label{"family", []string{FamilySchema}}
	engine := Label{"engine", []string{"PostgreSQL", "MySQL"}}
	return []Metric{
		{metricApplies, "counter", "Applies started, completed (proven to have converged), refused by the executor, and of uncertain outcome.",
			[]Label{family, {"outcome", []string{OutcomeStarted, OutcomeCompleted, OutcomeRefused, OutcomeUncertain}}}},
		{metricApprovals, "counter", "Approvals that became required, were accepted, and went stale.",
			[]Label{family, {"outcome", []string{OutcomeRequired, OutcomeAccepted, OutcomeStale}}}},
		{metricDrift, "counter", "Completed readings of a database.", []Label{engine, {"outcome", []string{OutcomeDrift, OutcomeInSync}}}},
		{metricFailures, "counter", "Failures by stage and category.", []Label{family,
			{"stage", []string{"resolve", "verify", "fetch", "observe", "plan", "apply", "controller"}},
			{"category", []string{CategoryInfrastructure, CategoryConfiguration, CategoryOperation, CategoryStaleInput}}}},
		{metricDurations, "histogram", "Seconds from the claim of an operation to its recorded result.", []Label{family,
			{"operation", []string{"refresh", "apply"}},
			{"outcome", []string{OutcomeCompleted, OutcomeFailed, OutcomeRefused, OutcomeUncertain}}}},
		{metricPlans, "counter", "Plans published.", []Label{family, engine, {"destructive", []string{"false", "true"}}}},
		{metricReconciliations, "counter", "Passes over a resource.", []Label{family, {"result", []string{ResultSuccess, ResultError}}}},
	}
}
