package judge_test

import (
	"fmt"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
)

// logged is one request a second of each of two managers, from before to after the cell.
func logged(t *testing.T, drop func(second int, pod string) bool) *judge.Audit {
	t.Helper()
	var log strings.Builder
	for second := -20; second < 620; second++ {
		for _, pod := range []string{"manager-1", "manager-2"} {
			if drop != nil && drop(second, pod) {
				continue
			}
			line := dossiertest.AuditLine(fmt.Sprintf("%s-%d", pod, second), at(float64(second)+0.5), manager, "get", "", "pods", "a", "x", 200)
			log.WriteString(strings.Replace(line, `"user":{`, `"user":{"extra":{"authentication.kubernetes.io/pod-name":["`+pod+`"]},`, 1))
		}
	}
	parsed, err := audit.Parse("control-plane", strings.NewReader(log.String()), false)
	if err != nil {
		t.Fatal(err)
	}
	return &judge.Audit{Set: audit.Merge(parsed), Digests: []string{"sha256:log"}}
}

func TestAuditLogsAreHeldAgainstTheManagersOwnCounters(t *testing.T) {
	peak := profile.Target{Metric: profile.ManagerRequests, Statistic: profile.Max, Bound: atMost(120), Population: "requests", Window: profile.Window{Over: profile.Sliding, Length: 60e9}}
	counting := func(seconds float64) map[string]float64 {
		return map[string]float64{`rest_client_requests_total{code="200",host="x"}`: seconds + 50, `rest_client_requests_total{code="<error>",host="x"}`: seconds * 3}
	}
	faster := func(seconds float64) map[string]float64 {
		return map[string]float64{`rest_client_requests_total{code="200",host="x"}`: seconds*1.1 + 50}
	}
	with := func(log *judge.Audit, purpose profile.Purpose) func(*profile.Profile, *judge.Evidence) {
		return func(p *profile.Profile, e *judge.Evidence) { e.Audit, p.Purpose = log, purpose }
	}
	good := sample.Set{Processes: scrape(managers(counting)...)}
	lost := func(second int, pod string) bool { return pod == "manager-1" && second > 300 && second < 310 }
	runMetered(t, map[string]metered{
		"should accept logs that explain the counters":          {target: peak, set: good, change: with(logged(t, nil), profile.Acceptance), want: "pass, 120 of 1"},
		"should see requests that no log holds":                 {target: peak, set: good, change: with(logged(t, lost), profile.Acceptance), want: "inconclusive (harness), 120 of 1, audit-incomplete", contains: "were logged of it"},
		"should see counters that rose faster than the log":     {target: peak, set: sample.Set{Processes: scrape(managers(faster)...)}, change: with(logged(t, nil), profile.Development), want: "inconclusive (harness), 120 of 1, audit-incomplete"},
		"should see a Pod whose counter nobody read":            {target: peak, set: sample.Set{Processes: scrape(managers(counting)[:1]...)}, change: with(logged(t, nil), profile.Development), want: "inconclusive (harness), 120 of 1, audit-incomplete, process-missing", contains: `Pod "manager-2"`},
		"should see managers that do not count":                 {target: peak, set: sample.Set{Processes: scrape(managers(always(map[string]float64{"up": 1}))...)}, change: with(logged(t, nil), profile.Development), want: "inconclusive (harness), 120 of 1, series-missing"},
		"should not accept without any counter":                 {target: peak, change: with(logged(t, nil), profile.Acceptance), want: "inconclusive (harness), 120 of 1, audit-incomplete", contains: "cannot be held against"},
		"should let development be without a counter":           {target: peak, change: with(logged(t, nil), profile.Development), want: "pass, 120 of 1"},
		"should fail what is too much although events are lost": {target: func() profile.Target { p := peak; p.Bound = atMost(119); return p }(), set: good, change: with(logged(t, lost), profile.Acceptance), want: "fail (product), 120 of 1, audit-incomplete, bound-exceeded"},
	})
}
