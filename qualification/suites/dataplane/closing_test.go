package dataplane

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// agent is how this suite names itself to API servers.
const agent = "ptah-qualify-suite/dataplane"

// TestClosingAudit comes after every other phase. No scenario of this suite lets a policy apply a plan by itself, so
// that each Apply Job in a namespace of it needs an approval that came before.
func TestClosingAudit(t *testing.T) {
	scenario(t, "closing-audit", func(_ context.Context, s *bench.Scenario) {
		var events []audit.Event
		for _, path := range s.Bench.Lab.AuditLogs {
			log, err := readAudit(path)
			s.Fixture(err)
			s.Check("the audit log "+path+" is whole", len(log.Defects) == 0, "its defects are %v", log.Defects)
			events = append(events, log.Events...)
		}
		found := settle(events, agent)
		s.Observe("what the audit logs show", found)
		s.Need("control: the logs show this suite's work", subject.ErrorUnless(found.Namespaces > 0 && found.Approvals > 0 && found.Applies > 0 && found.Refreshes > 0,
			fmt.Sprintf("they show %d namespaces with %d approvals, %d Apply Jobs and %d refreshes, so that they prove nothing", found.Namespaces, found.Approvals, found.Applies, found.Refreshes)))
		s.Check("no Apply Job that no approval asked for", len(found.Unasked) == 0, "Apply Jobs without an approval of their own before them: %v", found.Unasked)
		s.Check("no Job of the manager of another kind", len(found.Strange) == 0, "Jobs that are neither a refresh nor an Apply: %v", found.Strange)
	})
}

func readAudit(path string) (audit.Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return audit.Log{}, fmt.Errorf("read an audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	return audit.Parse(path, file, true)
}

// account is what audit logs show of the namespaces of a suite.
type account struct {
	Namespaces int      `json:"namespaces"`
	Approvals  int      `json:"approvals"`
	Applies    int      `json:"applies"`
	Refreshes  int      `json:"refreshes"`
	Unasked    []string `json:"unasked,omitempty"` // Apply Jobs that came when every approval before was used for another
	Strange    []string `json:"strange,omitempty"` // Jobs of the manager whose names say neither refresh nor Apply
}

// settle goes through the requests that created something, in their order, and lets each Apply Job use one approval of
// its namespace.
func settle(events []audit.Event, agent string) account {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b audit.Event) int { return a.Received.Compare(b.Received) })
	seen, open, found := map[string]bool{}, map[string]int{}, account{}
	for _, event := range events {
		if event.Verb != "create" || event.Code != 201 || event.Subresource != "" || seen[event.ID] || strings.Contains(event.URI, "dryRun=") {
			continue
		}
		seen[event.ID] = true
		if event.Resource == "namespaces" && event.Agent == agent {
			open[event.Name] = 0
			found.Namespaces++
		}
		if _, ours := open[event.Namespace]; !ours {
			continue
		}
		switch {
		case event.Resource == "ptahschemaapprovals":
			open[event.Namespace]++
			found.Approvals++
		case event.Resource != "jobs" || event.User != bench.ManagerUser:
		case strings.HasPrefix(event.Name, "ptah-refresh-"):
			found.Refreshes++
		case strings.HasPrefix(event.Name, "ptah-apply-"):
			found.Applies++
			if open[event.Namespace]--; open[event.Namespace] < 0 {
				found.Unasked = append(found.Unasked, event.Namespace+"/"+event.Name)
				open[event.Namespace] = 0
			}
		default:
			found.Strange = append(found.Strange, event.Namespace+"/"+event.Name)
		}
	}
	return found
}

// The account is tested on requests that nobody made, so that an assertion made with it can fail.
func TestAnApplyThatNobodyAskedForIsFound(t *testing.T) {
	const manager, space = bench.ManagerUser, "qualify-a"
	second := 0
	made := func(agent, user, resource, namespace, name string) audit.Event {
		second++
		return audit.Event{ID: fmt.Sprint(second), Received: time.Unix(int64(second), 0), Verb: "create", Code: 201, Agent: agent, User: user, Resource: resource, Namespace: namespace, Name: name}
	}
	namespace := made(agent, "admin", "namespaces", "", space)
	refresh := made("", manager, "jobs", space, "ptah-refresh-orders-1")
	approval := made("", "admin", "ptahschemaapprovals", space, "first")
	apply := made("", manager, "jobs", space, "ptah-apply-orders-1")
	again := made("", manager, "jobs", space, "ptah-apply-orders-2")
	later := made("", "admin", "ptahschemaapprovals", space, "late")
	refusal, dry, strange, foreign := later, later, again, namespace
	refusal.Code, dry.URI, strange.Name, foreign.Agent = 403, "/x?dryRun=All", "curious", "ptah-qualify-suite/other"
	for name, test := range map[string]struct {
		events           []audit.Event
		unasked, strange int
	}{
		"should let an approval cause one Apply":              {[]audit.Event{namespace, refresh, approval, apply}, 0, 0},
		"should find a second Apply of one approval":          {[]audit.Event{namespace, refresh, approval, apply, again}, 1, 0},
		"should find an Apply before its approval":            {[]audit.Event{namespace, again, later}, 1, 0},
		"should find an Apply whose approval was refused":     {[]audit.Event{namespace, refusal, again}, 1, 0},
		"should find an Apply whose approval was a rehearsal": {[]audit.Event{namespace, dry, again}, 1, 0},
		"should find a Job of another kind":                   {[]audit.Event{namespace, strange}, 0, 1},
		"should count one request of two logs once":           {[]audit.Event{namespace, approval, apply, apply}, 0, 0},
		"should leave namespaces of others alone":             {[]audit.Event{foreign, again}, 0, 0},
		"should go by time and not by order":                  {[]audit.Event{apply, approval, namespace}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := settle(test.events, agent)
			if len(found.Unasked) != test.unasked || len(found.Strange) != test.strange {
				t.Errorf("%+v", found)
			}
		})
	}
}
