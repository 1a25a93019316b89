package profile

// Metric is something that can be computed from evidence. The vocabulary is closed: a metric that nothing declares
// here cannot be a target, so no number is ever judged that no evidence was defined for.
type Metric string

// Metrics.
const (
	// ManagerRequests counts the requests of the manager identity, from the audit logs of every API server.
	ManagerRequests Metric = "manager-requests"
	// ManagerWorkRequests is ManagerRequests without those for the leader election Lease, which cost the same
	// whether or not there is work.
	ManagerWorkRequests Metric = "manager-work-requests"
	// RateLimitedResponses counts responses 429 to the manager identity.
	RateLimitedResponses Metric = "rate-limited-responses"
	// PriorityRejections counts requests that priority and fairness of any API server rejected while the workload ran.
	PriorityRejections Metric = "priority-rejections"
	// ClientThrottling is the time that clients of the manager processes waited for their own rate limiter.
	ClientThrottling Metric = "client-throttling"
	// MeasuredDuration is the length of a measurement that a suite or driver recorded.
	MeasuredDuration Metric = "measured-duration"
	// ReadOnlyCycles counts whole refreshes without mutation of each resource.
	ReadOnlyCycles Metric = "read-only-cycles"
	// CyclesAfterChange counts whole refreshes without mutation between one change of a resource and its next.
	CyclesAfterChange Metric = "cycles-after-change"
	// ChangesConverged counts the changes of each resource that ended in a proof of convergence.
	ChangesConverged Metric = "changes-converged"
	// ObservationAge is the age of the database observation of each resource.
	ObservationAge Metric = "observation-age"
	// Overdue is how far each resource is past the time at which its next refresh was due.
	Overdue Metric = "overdue"
	// OperationLatency is the time from the claim of an operation to its recorded end.
	OperationLatency Metric = "operation-latency"
	// QueueDelay is the time that work waits in the queues of the manager processes.
	QueueDelay Metric = "queue-delay"
	// TimeWithoutProgress is the longest time for which a resource with something to do did nothing.
	TimeWithoutProgress Metric = "time-without-progress"
	// AdmissionLatency is the time that an API server waits for a webhook of the operator.
	AdmissionLatency Metric = "admission-latency"
	// ManagerMemory is the resident memory of each manager process.
	ManagerMemory Metric = "manager-memory"
	// ManagerMemoryGrowth is how much the resident memory of a manager process grew over the last three checkpoints.
	ManagerMemoryGrowth Metric = "manager-memory-growth"
	// ManagerCPU is the processor use of all manager processes together, averaged over each scenario.
	ManagerCPU Metric = "manager-cpu"
	// ManagerRestarts counts restarts of manager containers that no scenario caused.
	ManagerRestarts Metric = "manager-restarts"
	// ManagerOutOfMemory counts manager containers that the kernel killed at their memory limit.
	ManagerOutOfMemory Metric = "manager-out-of-memory"
	// RunningOperations is the number of operation Pods that run at once.
	RunningOperations Metric = "running-operations"
	// PendingOperations is the number of operation Pods that wait to run at once.
	PendingOperations Metric = "pending-operations"
	// RetainedPlans is the size of all stored plan payloads after a maintenance.
	RetainedPlans Metric = "retained-plans"
	// RetainedPlansGrowth is how much the stored payloads grew over the last three checkpoints.
	RetainedPlansGrowth Metric = "retained-plans-growth"
	// BrokenPins counts pins on stored plans that no longer resolve to the exact bytes.
	BrokenPins Metric = "broken-pins"
	// AlertFiring is the time from the start of an incident to the first notification of it at the receiver. A
	// notification whose incident began earlier is of another one.
	AlertFiring Metric = "alert-firing"
	// AlertResolution is the time from the verified recovery of an incident to the notification that it is over.
	AlertResolution Metric = "alert-resolution"
	// UnauthorisedStatements counts statements in a database journal that no approval or policy allowed.
	UnauthorisedStatements Metric = "unauthorised-statements"
	// RepeatedApplies counts Apply Jobs beyond the first of one authorisation.
	RepeatedApplies Metric = "repeated-applies"
	// LostResources counts declared resources that vanished, or whose outcome ended unresolved.
	LostResources Metric = "lost-resources"
	// ForeignImages counts containers of the product whose running image is none of the release.
	ForeignImages Metric = "foreign-images"
	// UnverifiedArtifacts counts artifacts of the release whose digest, signature or provenance did not verify.
	UnverifiedArtifacts Metric = "unverified-artifacts"
	// DisclosedCredentials counts credentials found in logs, objects and evidence.
	DisclosedCredentials Metric = "disclosed-credentials"
	// IncompleteStreams counts streams of evidence without a record that they are complete.
	IncompleteStreams Metric = "incomplete-streams"
)

// Source is the kind of evidence that a metric is computed from.
type Source string

// Sources.
const (
	SourceAuditLogs    Source = "the audit logs of every API server"
	SourceLedgers      Source = "the ledgers of suites and drivers"
	SourceManagers     Source = "the metrics of every manager process"
	SourceServers      Source = "the metrics of every API server"
	SourceWatches      Source = "unbroken watches of resources, Jobs and Pods"
	SourceAlerts       Source = "the deliveries at the receiver of alerts and the incidents in the ledgers"
	SourceStatements   Source = "the statement journals of the databases"
	SourceInventory    Source = "the inventory of stored plans at each checkpoint"
	SourceInstallation Source = "the record of the installed release"
	SourceStore        Source = "the stored evidence itself"
)

// metricRule says how a metric may be declared and where its numbers come from. The populations of a metric are
// closed too, but for a metric that leaves them nil: those are counted over time, and their population is prose.
type metricRule struct {
	unit        Unit
	windows     []WindowKind
	source      Source
	populations []string
}

var (
	overTime    = []WindowKind{Sliding, EachMeasurement, WholeRun}
	overRun     = []WindowKind{WholeRun}
	overEach    = []WindowKind{EachMeasurement}
	slidingRun  = []WindowKind{Sliding, WholeRun}
	resources   = []string{PopulationAll, PopulationUnchanged, PopulationChanged}
	perProcess  = []string{PopulationProcess}
	checkpoints = []string{PopulationCheckpoint}
)

var metricRules = map[Metric]metricRule{
	ManagerRequests:        {UnitRequests, overTime, SourceAuditLogs, nil},
	ManagerWorkRequests:    {UnitRequests, overTime, SourceAuditLogs, nil},
	RateLimitedResponses:   {UnitResponses, overRun, SourceAuditLogs, nil},
	PriorityRejections:     {UnitRequests, overRun, SourceServers, []string{PopulationServer}},
	ClientThrottling:       {UnitSeconds, slidingRun, SourceManagers, perProcess},
	MeasuredDuration:       {UnitSeconds, overEach, SourceLedgers, measuredPopulations()},
	ReadOnlyCycles:         {UnitCycles, overRun, SourceWatches, resources},
	CyclesAfterChange:      {UnitCycles, overRun, SourceWatches, []string{PopulationChange}},
	ChangesConverged:       {UnitChanges, overRun, SourceWatches, []string{PopulationChanged}},
	ObservationAge:         {UnitSeconds, overRun, SourceWatches, resources},
	Overdue:                {UnitSeconds, overRun, SourceWatches, resources},
	OperationLatency:       {UnitSeconds, overRun, SourceWatches, []string{PopulationOperation}},
	QueueDelay:             {UnitSeconds, overRun, SourceManagers, []string{PopulationQueued}},
	TimeWithoutProgress:    {UnitSeconds, overRun, SourceWatches, resources},
	AdmissionLatency:       {UnitSeconds, overRun, SourceServers, []string{PopulationAdmission}},
	ManagerMemory:          {UnitMebibytes, overRun, SourceManagers, perProcess},
	ManagerMemoryGrowth:    {UnitPercent, overRun, SourceManagers, perProcess},
	ManagerCPU:             {UnitCores, overEach, SourceManagers, []string{PopulationScenario}},
	ManagerRestarts:        {UnitRestarts, overRun, SourceWatches, perProcess},
	ManagerOutOfMemory:     {UnitRestarts, overRun, SourceWatches, perProcess},
	RunningOperations:      {UnitPods, overRun, SourceWatches, []string{PopulationReading}},
	PendingOperations:      {UnitPods, overRun, SourceWatches, []string{PopulationReading}},
	RetainedPlans:          {UnitMebibytes, overRun, SourceInventory, checkpoints},
	RetainedPlansGrowth:    {UnitMebibytes, overRun, SourceInventory, checkpoints},
	BrokenPins:             {UnitPins, overRun, SourceInventory, checkpoints},
	AlertFiring:            {UnitSeconds, overEach, SourceAlerts, Alerts()},
	AlertResolution:        {UnitSeconds, overEach, SourceAlerts, Alerts()},
	UnauthorisedStatements: {UnitStatements, overRun, SourceStatements, []string{PopulationDatabase}},
	RepeatedApplies:        {UnitApplies, overRun, SourceWatches, []string{PopulationAuthorisation}},
	LostResources:          {UnitResources, overRun, SourceWatches, resources},
	ForeignImages:          {UnitContainers, overRun, SourceInstallation, []string{PopulationContainer}},
	UnverifiedArtifacts:    {UnitArtifacts, overRun, SourceInstallation, []string{PopulationArtifact}},
	DisclosedCredentials:   {UnitFindings, overRun, SourceStore, []string{PopulationFile}},
	IncompleteStreams:      {UnitStreams, overRun, SourceStore, []string{PopulationStream}},
}

// Metrics returns the vocabulary in order.
func Metrics() []Metric { return sortedKeys(metricRules) }

// Source says what kind of evidence the metric is computed from.
func (m Metric) Source() Source { return metricRules[m].source }

// Unit is the unit that the metric is counted in.
func (m Metric) Unit() Unit { return metricRules[m].unit }

// Populations returns what one sample of the metric may be, and nil where that is free text.
func (m Metric) Populations() []string { return metricRules[m].populations }

// UnmarshalText refuses unknown metrics.
func (m *Metric) UnmarshalText(text []byte) error { return oneOf(m, text, Metrics()...) }

// Unit is the unit of a bound.
type Unit string

// Units.
const (
	UnitRequests   Unit = "requests"
	UnitResponses  Unit = "responses"
	UnitSeconds    Unit = "seconds"
	UnitCycles     Unit = "cycles"
	UnitChanges    Unit = "changes"
	UnitMebibytes  Unit = "mebibytes"
	UnitPercent    Unit = "percent"
	UnitCores      Unit = "cores"
	UnitRestarts   Unit = "restarts"
	UnitPods       Unit = "pods"
	UnitPins       Unit = "pins"
	UnitStatements Unit = "statements"
	UnitApplies    Unit = "applies"
	UnitResources  Unit = "resources"
	UnitContainers Unit = "containers"
	UnitArtifacts  Unit = "artifacts"
	UnitFindings   Unit = "findings"
	UnitStreams    Unit = "streams"
)

// UnmarshalText refuses unknown units.
func (u *Unit) UnmarshalText(text []byte) error {
	return oneOf(u, text, UnitRequests, UnitResponses, UnitSeconds, UnitCycles, UnitChanges, UnitMebibytes, UnitPercent, UnitCores,
		UnitRestarts, UnitPods, UnitPins, UnitStatements, UnitApplies, UnitResources, UnitContainers, UnitArtifacts, UnitFindings, UnitStreams)
}
