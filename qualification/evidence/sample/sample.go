// Package sample is the raw readings that a driver takes beside a cell while it runs: a watch of the workload, scrapes
// of processes, counts of Pods, inventories of stored plans, statement journals, deliveries of alerts. It is pure; a
// driver writes the lines, package judge reads them.
//
// Each source is one stream of a cell, samples/<source>.jsonl. A stream that is not there means that nobody looked;
// a reading that failed says so in its own line; a value that was zero is a value. Nothing in a reading is computed:
// ages, rates and percentiles are for the judge.
package sample

import (
	"slices"
	"strings"
	"time"
)

// Source names one stream of readings.
type Source string

// Sources.
const (
	// Alerts are deliveries at the receiver of alerts.
	Alerts Source = "alerts"
	// Artifacts are the artifacts of the release, as they were verified.
	Artifacts Source = "artifacts"
	// Containers are lists of the running containers of the product.
	Containers Source = "containers"
	// History is a watch of the whole workload from one resource version on.
	History Source = "history"
	// Inventory is the stored plans at each checkpoint, which is after a maintenance.
	Inventory Source = "inventory"
	// Pods are counts of operation Pods.
	Pods Source = "pods"
	// Processes are scrapes of the metrics of manager processes and API servers.
	Processes Source = "processes"
	// Scans are searches of the kept files for credentials.
	Scans Source = "scans"
	// Statements are the statement journals of the databases.
	Statements Source = "statements"
)

// Sources returns every source, in order.
func Sources() []Source {
	return []Source{Alerts, Artifacts, Containers, History, Inventory, Pods, Processes, Scans, Statements}
}

const (
	prefix = "samples/"
	suffix = ".jsonl"
)

// Name is the name of the stream, relative to its cell.
func (s Source) Name() string { return prefix + string(s) + suffix }

// SourceOf returns the source whose stream has this name, relative to a cell.
func SourceOf(name string) (Source, bool) {
	rest, isSample := strings.CutPrefix(name, prefix)
	source, isStream := strings.CutSuffix(rest, suffix)
	return Source(source), isSample && isStream && slices.Contains(Sources(), Source(source))
}

// Reading is when one line was read. Values are of some moment from From to To, both of the clock of the machine that
// read. Failed says why nothing could be read; then the line has no values.
type Reading struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Failed string    `json:"failed,omitempty"`
}

// Family is a family of resources.
type Family string

// Families.
const (
	Schema    Family = "schema"
	Migration Family = "migration"
)

// Resource is one object of the workload as its spec and status say. Times are nil where the status has none.
type Resource struct {
	Family     Family     `json:"family"`
	Namespace  string     `json:"namespace"`
	Name       string     `json:"name"`
	UID        string     `json:"uid"`
	Generation int64      `json:"generation"`
	Desired    string     `json:"desired"` // the reference of the artifact that the spec asks for
	Suspended  bool       `json:"suspended,omitempty"`
	Deleting   bool       `json:"deleting,omitempty"`
	Gated      bool       `json:"gated,omitempty"`     // waits for a person's approval
	Uncertain  bool       `json:"uncertain,omitempty"` // owes the proof of an Apply whose outcome is unknown
	Ready      bool       `json:"ready,omitempty"`     // Ready and InSync at this generation
	Completed  *time.Time `json:"completed,omitempty"` // last successful reconciliation
	Observed   *time.Time `json:"observed,omitempty"`  // last reading of the database
	Due        *time.Time `json:"due,omitempty"`       // next reconciliation
	Active     *Operation `json:"active,omitempty"`    // the claim, nil where none is held
}

// Slot is the position that a resource holds in the workload. A replacement of the object keeps it.
func (r Resource) Slot() string { return string(r.Family) + " " + r.Namespace + "/" + r.Name }

// Kind is what an operation does.
type Kind string

// Kinds of operations.
const (
	Refresh Kind = "refresh" // reads only
	Apply   Kind = "apply"   // changes the database
	Proof   Kind = "proof"   // the refresh that proves an Apply
)

// Operation is a claim. Authorisation is the UID of the approval that an Apply spent, or of the plan where the policy
// of the resource asks for none.
type Operation struct {
	Kind          Kind      `json:"kind"`
	ID            string    `json:"id"`
	JobUID        string    `json:"jobUID,omitempty"`
	Authorisation string    `json:"authorisation,omitempty"`
	Started       time.Time `json:"started"`
}

// ChangeType is what a watch says happened.
type ChangeType string

// Types of changes. Initial is the list that a watch starts from. A gap means that the history before and after it do
// not join: the cursor expired, or the watch was refused.
const (
	Initial  ChangeType = "initial"
	Added    ChangeType = "added"
	Modified ChangeType = "modified"
	Deleted  ChangeType = "deleted"
	Mark     ChangeType = "mark" // the watch was alive, and nothing else is said
	Gap      ChangeType = "gap"
)

// Change is one event of the watch. Resource is nil in marks and gaps. Retired is true where the driver itself took the
// resource away for good.
type Change struct {
	At       time.Time  `json:"at"`
	Type     ChangeType `json:"type"`
	Resource *Resource  `json:"resource,omitempty"`
	Retired  bool       `json:"retired,omitempty"`
	Message  string     `json:"message,omitempty"`
}

// Role is what a scraped process is.
type Role string

// Roles.
const (
	Manager   Role = "manager"
	APIServer Role = "api-server"
)

// Process is the identity of one life of one process. A counter means something only within it.
type Process struct {
	Role      Role      `json:"role"`
	Pod       string    `json:"pod"` // name, or that of the node of an API server
	UID       string    `json:"uid"` // of the Pod
	Container string    `json:"container,omitempty"`
	Started   time.Time `json:"started"`
	Restarts  int       `json:"restarts"`
}

// Life distinguishes one life of a process from another of the same Pod.
func (p Process) Life() string {
	return strings.Join([]string{string(p.Role), p.UID, p.Container, p.Started.UTC().Format(time.RFC3339Nano)}, " ")
}

// Scrape is one reading of the metrics of one process. Values are series as Prometheus writes them, such as
// workqueue_depth or rest_client_requests_total{code="429"}, to their values; a series that the process does not
// have is absent, which is not zero. OutOfMemory is true where the life before this one was ended by the kernel.
type Scrape struct {
	Reading
	Process     Process            `json:"process"`
	OutOfMemory bool               `json:"outOfMemory,omitempty"`
	Values      map[string]float64 `json:"values,omitempty"`
}

// PodCount is one count of the Pods of operations.
type PodCount struct {
	Reading
	Running *int `json:"running"`
	Pending *int `json:"pending"`
}

// Stored is the stored plans at one checkpoint. A broken pin is one that no longer resolves to the exact bytes.
type Stored struct {
	Reading
	Plans        *int   `json:"plans"`
	PayloadBytes *int64 `json:"payloadBytes"`
	Pins         *int   `json:"pins"`
	BrokenPins   *int   `json:"brokenPins"`
}

// Journal is what one database wrote down of its statements, from From to To. An empty journal is one that may never
// have been written.
type Journal struct {
	Reading
	Database   string      `json:"database"`
	Statements []Statement `json:"statements"`
}

// Statement is one statement of a journal. The text stays with the database; Authorisation names the approval, the
// policy or the fixture that allowed it, and is empty where none did.
type Statement struct {
	At            time.Time `json:"at"`
	Client        string    `json:"client"`
	Digest        string    `json:"digest"` // of the text
	Authorisation string    `json:"authorisation,omitempty"`
}

// Running is one list of the running containers of the product, those of operations included.
type Running struct {
	Reading
	Containers []Container `json:"containers"`
}

// Container is one running container. Digest is what the container runtime says it runs.
type Container struct {
	Pod    string `json:"pod"`
	UID    string `json:"uid"`
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Artifact is one artifact of the release, checked where a user gets it. A check that was not made is nil.
type Artifact struct {
	Reading
	Name       string `json:"name"`
	Digest     string `json:"digest,omitempty"`
	Matches    *bool  `json:"matches"` // its digest is the one that the release names
	Signature  *bool  `json:"signature"`
	Provenance *bool  `json:"provenance"`
}

// Scan is one file that was searched for credentials, archives opened.
type Scan struct {
	Reading
	File     string   `json:"file"`
	Findings []string `json:"findings"` // the rule that each of them broke
}

// AlertStatus is what a delivery says.
type AlertStatus string

// Statuses.
const (
	Firing   AlertStatus = "firing"
	Resolved AlertStatus = "resolved"
)

// Delivery is one alert as the receiver got it. A mark line, one without an alert, says that the receiver was there
// to get one. Started is the startsAt of the alert: when the incident began, not when it was delivered.
type Delivery struct {
	At          time.Time         `json:"at"`
	Alert       string            `json:"alert,omitempty"`
	Status      AlertStatus       `json:"status,omitempty"`
	Started     time.Time         `json:"started,omitzero"`
	Ended       time.Time         `json:"ended,omitzero"`
	Fingerprint string            `json:"fingerprint,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}
