package profile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Requirement is one of the twelve closing conditions, PA-01 to PA-12.
type Requirement string

// RequirementTitles says what each requirement is about.
var requirementTitles = map[Requirement]string{
	"PA-01": "The tested release is identified by digests and the declared coverage is complete",
	"PA-02": "Only authorised database work runs",
	"PA-03": "An interrupted Apply stays safe",
	"PA-04": "Work progresses, and a refusal tells a person what to do",
	"PA-05": "API and authority boundaries hold",
	"PA-06": "Installing, upgrading and removing a release is safe",
	"PA-07": "Operator and database state can be restored",
	"PA-08": "Capacity and failure limits are known and kept",
	"PA-09": "Failures are detected and can be diagnosed",
	"PA-10": "The documentation works as written",
	"PA-11": "The published artifacts are the ones that were tested",
	"PA-12": "Evidence is kept and the decision is bounded",
}

// Requirements returns PA-01 to PA-12 in order.
func Requirements() []Requirement {
	list := make([]Requirement, 0, len(requirementTitles))
	for requirement := range requirementTitles {
		list = append(list, requirement)
	}
	slices.Sort(list)
	return list
}

// Title says what the requirement is about.
func (r Requirement) Title() string { return requirementTitles[r] }

// Excludable says whether a profile may exclude the requirement. Authorised work, safety through interruption and
// the authority boundaries may never be excluded.
func (r Requirement) Excludable() bool { return r != "PA-02" && r != "PA-03" && r != "PA-05" }

// UnmarshalText refuses anything but the twelve.
func (r *Requirement) UnmarshalText(text []byte) error {
	return oneOf(r, text, Requirements()...)
}

// Statistic is how the samples of a population become one number.
type Statistic string

// Statistics. Percentiles are taken by nearest rank: a value that was observed.
const (
	Max   Statistic = "max"
	Min   Statistic = "min"
	Sum   Statistic = "sum"
	Count Statistic = "count"
	P50   Statistic = "p50"
	P95   Statistic = "p95"
	P99   Statistic = "p99"
)

// UnmarshalText refuses unknown statistics.
func (s *Statistic) UnmarshalText(text []byte) error {
	return oneOf(s, text, Max, Min, Sum, Count, P50, P95, P99)
}

// Percentile returns the percentile in (0,100) and whether the statistic is one.
func (s Statistic) Percentile() (int, bool) {
	rest, ok := strings.CutPrefix(string(s), "p")
	if !ok {
		return 0, false
	}
	percent, err := strconv.Atoi(rest)
	return percent, err == nil
}

// LeastSamples is the smallest population the statistic means something for: a percentile needs at least one
// observation beyond it, so p95 needs 20 and p99 needs 100.
func (s Statistic) LeastSamples() int {
	percent, ok := s.Percentile()
	if !ok {
		return 1
	}
	return (100 + (100 - percent) - 1) / (100 - percent)
}

// FaultClass is a kind of deliberate fault.
type FaultClass string

// Classes of faults.
const (
	FaultDrift             FaultClass = "drift"              // the database was changed by hand
	FaultConcurrentChange  FaultClass = "concurrent-change"  // the database was changed between approval and Apply
	FaultForgedIdentity    FaultClass = "forged-identity"    // somebody claims to be somebody else
	FaultWrongCredential   FaultClass = "wrong-credential"   // a credential that the other side refuses
	FaultDatabaseOutage    FaultClass = "database-outage"    // the database cannot be reached
	FaultDatabaseDelay     FaultClass = "database-delay"     // the database answers slowly
	FaultRegistryOutage    FaultClass = "registry-outage"    // the registry cannot be reached
	FaultManagerRestart    FaultClass = "manager-restart"    // manager processes were replaced
	FaultAPIServerRestart  FaultClass = "api-server-restart" // an API server or the controller manager was replaced
	FaultOverload          FaultClass = "overload"           // more resources than the profile declares
	FaultRetention         FaultClass = "retention"          // maintenance of stored plans is hindered
	FaultNodeIsolation     FaultClass = "node-isolation"     // a node cannot reach the API server
	FaultStateLoss         FaultClass = "state-loss"         // operator or database state is gone
	FaultAdmissionOutage   FaultClass = "admission-outage"   // the webhooks cannot be reached
	FaultMonitoringOutage  FaultClass = "monitoring-outage"  // metrics cannot be scraped
	FaultCertificateExpiry FaultClass = "certificate-expiry" // a serving certificate is about to end
	FaultBindingChange     FaultClass = "binding-change"     // something that an approval binds was changed before the Apply
	FaultOperationKilled   FaultClass = "operation-killed"   // the Pod or Job of an operation was removed, or ran out of time
	FaultHungResult        FaultClass = "hung-result"        // reading the result of an operation does not end
	FaultLockHeld          FaultClass = "lock-held"          // the realm Lease cannot be given back
	FaultQuotaExhausted    FaultClass = "quota-exhausted"    // a quota of the workload namespace has nothing left
	FaultUpgradeInterrupt  FaultClass = "upgrade-interrupt"  // an upgrade was stopped, or its hook failed
	FaultWriteRefusal      FaultClass = "write-refusal"      // the API server refuses writes or reads of the manager
)

// UnmarshalText refuses unknown classes.
func (f *FaultClass) UnmarshalText(text []byte) error {
	return oneOf(f, text, FaultDrift, FaultConcurrentChange, FaultForgedIdentity, FaultWrongCredential, FaultDatabaseOutage,
		FaultDatabaseDelay, FaultRegistryOutage, FaultManagerRestart, FaultAPIServerRestart, FaultOverload, FaultRetention,
		FaultNodeIsolation, FaultStateLoss, FaultAdmissionOutage, FaultMonitoringOutage, FaultCertificateExpiry, FaultBindingChange,
		FaultOperationKilled, FaultHungResult, FaultLockHeld, FaultQuotaExhausted, FaultUpgradeInterrupt, FaultWriteRefusal)
}

// UnmarshalText refuses unknown groupings.
func (g *Grouping) UnmarshalText(text []byte) error {
	return oneOf(g, text, PerServer, PerProcess, PerResource)
}

// UnmarshalText refuses unknown kinds of windows.
func (w *WindowKind) UnmarshalText(text []byte) error {
	return oneOf(w, text, Sliding, EachMeasurement, WholeRun)
}

// UnmarshalText refuses unknown purposes.
func (p *Purpose) UnmarshalText(text []byte) error { return oneOf(p, text, Acceptance, Development) }

// Date is a day, written 2026-11-29.
type Date string

// UnmarshalText refuses what is no day of the calendar.
func (d *Date) UnmarshalText(text []byte) error {
	if _, err := time.Parse(time.DateOnly, string(text)); err != nil {
		return fmt.Errorf("it must be a day such as 2026-11-29, not %q", text)
	}
	*d = Date(text)
	return nil
}

func oneOf[T ~string](into *T, text []byte, allowed ...T) error {
	value := T(text)
	if !slices.Contains(allowed, value) {
		list := make([]string, len(allowed))
		for i, word := range allowed {
			list[i] = string(word)
		}
		return fmt.Errorf("%q is unknown, use one of: %s", text, strings.Join(list, ", "))
	}
	*into = value
	return nil
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

var idPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Number writes a number without a needless fraction.
func Number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
