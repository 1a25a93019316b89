// Package dossiertest makes runs for tests: a small passing case under the quickstart profile of the repository, that a
// test changes before it is stored. Times are fixed, so that the same case gives the same bytes.
package dossiertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/ledger"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/evidence/stream"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/profile"
)

// Start is when every case begins.
var Start = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// Case is a run before it is stored. Every field may be changed.
type Case struct {
	Profile []byte
	Matrix  []byte
	Suites  []byte
	Facts   Facts
	Ledger  []byte            // the stream as the suite left it; nil for none
	Audit   map[string][]byte // server to log
	Streams map[string][]byte // what else the cell keeps, by its name within the cell, such as samples/history.jsonl
	Skip    bool              // leave the cell unfinished
}

// Facts are what a driver knows about a run.
type Facts struct {
	Harness dossier.Harness `json:"harness"`
	Release dossier.Release `json:"release"`
	Lab     dossier.Lab     `json:"lab"`
}

// Digest returns a digest made of one repeated hex digit.
func Digest(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// Passing returns the case in which everything passes.
func Passing(t testing.TB) *Case {
	t.Helper()
	c := &Case{Profile: repository(t, "profiles/quickstart.yaml"), Matrix: repository(t, "matrices/functional.yaml"), Suites: repository(t, "support/suites.yaml")}
	c.Facts = Facts{
		Harness: dossier.Harness{Commit: strings.Repeat("c", 40), Version: "test"},
		Release: dossier.Release{Version: "0.0.1", Images: map[string]string{"manager": Digest("1"), "runner": Digest("2"), "executor": Digest("3")}, ChartVersion: "0.0.1", ChartDigest: Digest("4")},
		Lab: dossier.Lab{ID: "test", ClusterUID: "0b1e6f5e-6d35-4d8b-8b0e-1f6f0f6f7a11", KubernetesVersion: "v1.37.2", Platform: "linux/amd64", NativePlatform: true,
			Images: map[string]dossier.LabImage{"kind-node": {Source: "modules", Digest: Digest("5"), Version: "1.37.2"}, "postgresql": {Source: "modules", Digest: Digest("6"), Version: "17"}}},
	}
	c.Ledger = Stream(t, Entries()...)
	c.Audit = map[string][]byte{"control-plane": AuditLog(Start, 180*time.Second)}
	return c
}

func repository(t testing.TB, path string) []byte {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// A test runs in the folder of its package, and a binary built with -trimpath does not know its sources.
	for !exists(filepath.Join(root, "go.mod")) && root != filepath.Dir(root) {
		root = filepath.Dir(root)
	}
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// At is a moment of the case.
func At(seconds float64) time.Time { return Start.Add(time.Duration(seconds * float64(time.Second))) }

// Entries returns the ledger of the passing case: seven scenarios of 15 s, one every 20 s from 10 s on.
func Entries() []scenario.Entry {
	var entries []scenario.Entry
	names := []string{"converge-from-empty-after-approval", "second-refresh-changes-nothing", "documented-first-change",
		"typed-approver-replaced", "drift-seen-within-one-interval", "change-before-apply-refused", "wrong-password-bounded-retry"}
	for i, name := range names {
		begin := 10 + 20*float64(i)
		entries = append(entries, scenario.Entry{Event: scenario.EventStart, At: At(begin), Scenario: name})
		if i >= 3 {
			entries = append(entries, scenario.Entry{Event: scenario.EventWitness, At: At(begin + 3), Scenario: name, Key: "took effect", Value: json.RawMessage(`true`)})
		}
		held := true
		entries = append(entries, scenario.Entry{Event: scenario.EventAssert, At: At(begin + 12), Scenario: name, Key: "holds", Held: &held, Message: "it holds"})
		switch i {
		case 0:
			entries = append(entries, measure(name, "apply", begin+5, begin+12))
		case 1:
			entries = append(entries, measure(name, "refresh", begin+3, begin+7), measure(name, "refresh", begin+9, begin+14))
		}
		entries = append(entries, scenario.Entry{Event: scenario.EventEnd, At: At(begin + 15), Scenario: name, Outcome: scenario.OutcomePass})
	}
	return entries
}

func measure(name, population string, from, to float64) scenario.Entry {
	begin, end := At(from), At(to)
	return scenario.Entry{Event: scenario.EventMeasure, At: At(to), Scenario: name, Key: population, Message: "team/orders", From: &begin, To: &end}
}

// Stream writes entries as a whole ledger.
func Stream(t testing.TB, entries ...scenario.Entry) []byte {
	t.Helper()
	return Lines(t, entries)
}

// Lines writes values as a whole stream.
func Lines[T any](t testing.TB, values []T) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := stream.NewWriter(&buffer)
	for _, value := range values {
		if err := writer.Append(value); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// AuditLog returns a log of one API server over a length of time: the kubelet every ten seconds, the leader election
// every two, and one request of the manager for work every second.
func AuditLog(from time.Time, length time.Duration) []byte {
	var log bytes.Buffer
	for second := range int(length / time.Second) {
		at := from.Add(time.Duration(second) * time.Second)
		if second%10 == 0 || second == int(length/time.Second)-1 {
			log.WriteString(AuditLine(fmt.Sprintf("kubelet-%d", second), at, "system:node:control-plane", "get", "", "nodes", "", "control-plane", 200))
		}
		log.WriteString(AuditLine(fmt.Sprintf("work-%d", second), at.Add(300*time.Millisecond), Manager, "patch", "operator.ptah.run", "ptahschemas", "team", "orders", 200))
		if second%2 == 0 {
			log.WriteString(AuditLine(fmt.Sprintf("lease-%d", second), at.Add(600*time.Millisecond), Manager, "update", "coordination.k8s.io", "leases", "ptah-system", "ptah-operator.operator.ptah.run", 200))
		}
	}
	return log.Bytes()
}

// Manager is the identity that the quickstart profile counts.
const Manager = "system:serviceaccount:ptah-system:ptah-operator"

// AuditLine returns one event as an API server writes it.
func AuditLine(id string, at time.Time, user, verb, group, resource, namespace, name string, code int) string {
	const stamp = "2006-01-02T15:04:05.000000Z"
	event := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": id, "stage": "ResponseComplete", "verb": verb,
		"requestURI": "/apis/" + group + "/" + resource + "/" + name, "user": map[string]any{"username": user}, "userAgent": "test",
		"objectRef":      map[string]any{"resource": resource, "namespace": namespace, "name": name, "apiGroup": group},
		"responseStatus": map[string]any{"code": code}, "requestReceivedTimestamp": at.UTC().Format(stamp), "stageTimestamp": at.Add(2 * time.Millisecond).UTC().Format(stamp),
	}
	line, err := json.Marshal(event)
	if err != nil {
		panic(err) // plain maps of strings
	}
	return string(line) + "\n"
}

// Inputs returns the inputs of the only cell of the case.
func (c *Case) Inputs(t testing.TB) matrix.Inputs {
	t.Helper()
	p, err := profile.Decode("profile", c.Profile)
	if err != nil {
		t.Fatal(err)
	}
	m, err := matrix.Decode("matrix", c.Matrix)
	if err != nil {
		t.Fatal(err)
	}
	suites, err := catalogue.DecodeSuites("suites", c.Suites)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := m.Select(p.Coverage[0].Depth)
	if err != nil {
		t.Fatal(err)
	}
	suite, err := suites.Find(cells[0].Suite())
	if err != nil {
		t.Fatal(err)
	}
	labImages := map[string]string{}
	for role, image := range c.Facts.Lab.Images {
		labImages[role] = image.Digest
	}
	return matrix.Inputs{Cell: cells[0], Profile: p.Digest(), Matrix: m.Digest(), Suite: suite.Digest(), Images: c.Facts.Release.Images, Chart: c.Facts.Release.ChartDigest,
		LabImages: labImages, ImageSource: c.Facts.Lab.ImageSource(), Platform: c.Facts.Lab.Platform, Native: c.Facts.Lab.NativePlatform,
		ControlPlanes: 1, Workers: 0, Harness: c.Facts.Harness.String()}
}

// Store writes the case as a closed run and returns its directory.
func (c *Case) Store(t testing.TB) string { return c.StoreWith(t, c.Inputs(t)) }

// StoreWith is Store with other inputs of the cell.
func (c *Case) StoreWith(t testing.TB, inputs matrix.Inputs) string {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	run, err := evidence.CreateRun(t.TempDir(), "test-run", evidence.WithClock(func() time.Time { return Start }))
	must(err)
	must(dossier.Begin(run, dossier.Declarations{Profile: c.Profile, Matrices: map[string][]byte{"functional": c.Matrix}, Suites: c.Suites, Harness: c.Facts.Harness}))
	lab, err := json.Marshal(c.Facts.Lab)
	must(err)
	cell, err := dossier.BeginCell(run, inputs, c.Facts.Release, lab)
	must(err)
	if c.Ledger != nil {
		staging := t.TempDir()
		must(os.WriteFile(filepath.Join(staging, ledger.FileName), c.Ledger, 0o600))
		must(cell.ImportSuite(inputs.Cell.Suite(), staging))
	}
	for _, server := range c.servers() {
		must(dossier.AddAuditLog(cell, server, 0, bytes.NewReader(c.Audit[server])))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Streams)) {
		_, err := cell.PutFile(name, bytes.NewReader(c.Streams[name]))
		must(err)
	}
	if !c.Skip {
		must(cell.Finish())
	}
	_, err = run.Close()
	must(err)
	return run.Dir()
}

func (c *Case) servers() []string {
	var names []string
	for name := range c.Audit {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// PassingCase is Passing for tables of tests.
func PassingCase(t *testing.T) *Case {
	t.Helper()
	return Passing(t)
}
