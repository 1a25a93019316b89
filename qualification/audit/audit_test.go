package audit

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

var start = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func text(id, stage, user, verb string, received float64, code int) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":%q,"stage":%q,"requestURI":"/api/v1/pods?watch=1","verb":%q,`+
		`"user":{"username":%q,"extra":{"authentication.kubernetes.io/pod-name":["manager-1"]}},"userAgent":"ptah","objectRef":{"resource":"pods","namespace":"a","apiVersion":"v1"},`+
		`"responseStatus":{"code":%d},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n",
		id, stage, verb, user, code, at(received).Format("2006-01-02T15:04:05.000000Z"), at(received+0.01).Format("2006-01-02T15:04:05.000000Z"))
}

func parse(t *testing.T, server, data string, open bool) Log {
	t.Helper()
	log, err := Parse(server, strings.NewReader(data), open)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestARequestWithTwoStagesCountsOnce(t *testing.T) {
	set := Merge(parse(t, "a", text("1", "ResponseStarted", "m", "watch", 1, 200)+text("1", "ResponseComplete", "m", "watch", 1, 200)+text("2", "ResponseComplete", "m", "get", 2, 404), false))
	if len(set.Events) != 2 || len(set.Defects) != 0 || set.Events[1].Code != 404 || set.Events[0].Pod != "manager-1" {
		t.Errorf("%+v", set)
	}
}

func TestARequestThatTwoServersLogCountsOnce(t *testing.T) {
	set := Merge(parse(t, "a", text("1", "ResponseComplete", "m", "get", 1, 200), false), parse(t, "b", text("1", "ResponseComplete", "m", "get", 1.001, 200), false))
	if len(set.Events) != 1 || len(set.Defects) != 0 || len(set.Servers) != 2 {
		t.Errorf("%+v", set)
	}
}

func TestOneIDForTwoRequestsIsADefect(t *testing.T) {
	first := text("1", "ResponseComplete", "m", "get", 1, 200)
	for name, second := range map[string]string{
		"another user": text("1", "ResponseComplete", "other", "get", 1, 200),
		"another verb": text("1", "ResponseComplete", "m", "delete", 1, 200),
		"another time": text("1", "ResponseComplete", "m", "get", 5, 200),
	} {
		if set := Merge(parse(t, "a", first+second, false)); len(set.Defects) != 1 {
			t.Errorf("%s: defects are %v", name, set.Defects)
		}
	}
}

func TestDamagedLogsYieldDefectsAndNeverASmallerCount(t *testing.T) {
	good := text("1", "ResponseComplete", "m", "get", 1, 200)
	cases := map[string]struct {
		data    string
		open    bool
		defects int
	}{
		"should take a whole log":                       {good, false, 0},
		"should take an empty log":                      {"", false, 0},
		"should see a line that is no JSON":             {"hello\n" + good, false, 1},
		"should see an empty line":                      {"\n" + good, false, 1},
		"should see another kind":                       {strings.Replace(good, `"Event"`, `"Pod"`, 1) + good, false, 1},
		"should see an event without an id":             {strings.Replace(good, `"auditID":"1"`, `"auditID":""`, 1), false, 1},
		"should see an event without a time":            {strings.Replace(good, "requestReceivedTimestamp", "x", 1), false, 1},
		"should see a cut last line of a closed file":   {good + good[:50], false, 1},
		"should expect a cut last line of an open file": {good + good[:50], true, 0},
		"should see a cut line in the middle":           {good[:50] + "\n" + good, true, 1},
		"should see a line beyond the limit":            {strings.Repeat("x", MaxLine+10) + "\n" + good, true, 1},
		"should see a good line beyond the limit":       {strings.Replace(good, `"ptah"`, `"`+strings.Repeat("x", 2*MaxLine)+`"`, 1), true, 1},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			log := parse(t, "a", test.data, test.open)
			if len(log.Defects) != test.defects {
				t.Errorf("%d defects, want %d: %v", len(log.Defects), test.defects, log.Defects)
			}
		})
	}
}

func TestCompleteness(t *testing.T) {
	log := func(server string, from, to float64) Log {
		return parse(t, server, text(server+"1", "ResponseComplete", "m", "get", from, 200)+text(server+"2", "ResponseComplete", "m", "get", to, 200), true)
	}
	cases := map[string]struct {
		logs    []Log
		servers int
		want    string
	}{
		"should accept logs that reach beyond both ends":   {[]Log{log("a", 0, 100), log("b", 5, 95)}, 2, ""},
		"should accept logs that begin and end just there": {[]Log{log("a", 10, 90)}, 1, ""},
		"should see a log that begins late":                {[]Log{log("a", 10.001, 100)}, 1, "after the start"},
		"should see a log that ends early":                 {[]Log{log("a", 0, 89.98)}, 1, "before the end"},
		"should see one of two logs end early":             {[]Log{log("a", 0, 100), log("b", 0, 50)}, 2, "API server b"},
		"should see a missing server":                      {[]Log{log("a", 0, 100)}, 3, "of 1 API servers, the cluster has 3"},
		"should see a server too many":                     {[]Log{log("a", 0, 100), log("b", 0, 100)}, 1, "of 2 API servers, the cluster has 1"},
		"should see an empty log":                          {[]Log{log("a", 0, 100), parse(t, "b", "", true)}, 2, "holds no event"},
		"should see no log at all":                         {nil, 1, "of 0 API servers"},
		"should pass on defects":                           {[]Log{log("a", 0, 100), parse(t, "a", "x\n", true)}, 1, "no audit event"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var found string
			for _, defect := range Merge(test.logs...).Check(test.servers, at(10), at(90)) {
				found += "API server " + defect.Server + ": " + defect.Message + "\n"
			}
			if (test.want == "") != (found == "") || !strings.Contains(found, test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

func events(seconds ...float64) []Event {
	var list []Event
	for _, s := range seconds {
		list = append(list, Event{Received: at(s)})
	}
	return list
}

func TestThePeakAtItsEdges(t *testing.T) {
	cases := map[string]struct {
		events []Event
		want   int
	}{
		"should be zero without events":                      {nil, 0},
		"should count one event":                             {events(5), 1},
		"should count two events just inside a window":       {events(0, 59.999), 2},
		"should not count an event at exactly the length":    {events(0, 60), 1},
		"should count events of the same moment":             {events(1, 1, 1), 3},
		"should find a peak in the middle":                   {events(0, 100, 110, 120, 130, 300), 4},
		"should not add events of two windows":               {events(0, 1, 61, 62), 2},
		"should count a window that begins after the first":  {events(0, 30, 60, 89), 3},
		"should count the last window":                       {events(0, 200, 201, 202), 3},
		"should not be fooled by a gap inside of the window": {events(0, 58, 59, 60.5), 3},
	}
	for name, test := range cases {
		if peak := SlidingPeak(test.events, time.Minute); peak.Count != test.want {
			t.Errorf("%s: %d, want %d", name, peak.Count, test.want)
		}
	}
}

func TestThePeakEqualsTryingEveryWindow(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 200 {
		var list []Event
		now := 0.0
		for range random.Intn(60) {
			now += random.ExpFloat64() * 10
			list = append(list, Event{Received: at(now).Truncate(time.Second)})
		}
		best := 0
		for end := at(0); end.Before(at(now + 120)); end = end.Add(500 * time.Millisecond) {
			count := 0
			for _, event := range list {
				if event.Received.After(end.Add(-time.Minute)) && !event.Received.After(end) {
					count++
				}
			}
			best = max(best, count)
		}
		if peak := SlidingPeak(list, time.Minute); peak.Count != best {
			t.Fatalf("the peak is %d, trying every window gives %d", peak.Count, best)
		}
	}
}

func TestBetweenIncludesBothEnds(t *testing.T) {
	list := events(1, 2, 2, 3, 4)
	for _, test := range []struct {
		from, to float64
		want     int
	}{{2, 3, 3}, {1.5, 2.5, 2}, {0, 9, 5}, {5, 6, 0}, {0, 0.5, 0}, {3, 2, 0}, {2, 2, 2}} {
		if got := len(Between(list, Interval{at(test.from), at(test.to)})); got != test.want {
			t.Errorf("from %v to %v: %d, want %d", test.from, test.to, got, test.want)
		}
	}
}

func TestSegmentsWithoutFaults(t *testing.T) {
	whole := Interval{at(0), at(100)}
	cases := map[string]struct {
		cut  []Interval
		want string
	}{
		"none":           {nil, "0-100"},
		"in the middle":  {[]Interval{{at(40), at(60)}}, "0-40 60-100"},
		"overlapping":    {[]Interval{{at(50), at(70)}, {at(40), at(60)}}, "0-40 70-100"},
		"inside another": {[]Interval{{at(10), at(90)}, {at(20), at(30)}}, "0-10 90-100"},
		"at both ends":   {[]Interval{{at(-5), at(5)}, {at(95), at(105)}}, "5-95"},
		"all of it":      {[]Interval{{at(-1), at(101)}}, ""},
		"outside of it":  {[]Interval{{at(200), at(201)}, {at(-9), at(-8)}}, "0-100"},
	}
	for name, test := range cases {
		var found []string
		for _, segment := range SegmentsWithout(whole, test.cut) {
			found = append(found, fmt.Sprintf("%g-%g", segment.From.Sub(start).Seconds(), segment.To.Sub(start).Seconds()))
		}
		if got := strings.Join(found, " "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestFiltersAndGroups(t *testing.T) {
	set := Set{Events: []Event{
		{ID: "1", User: "m", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "s", Name: "l", Code: 200},
		{ID: "2", User: "m", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "s", Name: "realm", Code: 200},
		{ID: "3", User: "m", Verb: "get", URI: "/readyz?verbose", Code: 429},
		{ID: "4", User: "n", Verb: "patch", Group: "g", Resource: "things", Subresource: "status"},
	}}
	if got := len(set.Where(ByUser("m"))); got != 3 {
		t.Errorf("%d requests of m", got)
	}
	if got := len(set.Where(ByUser("m"), Not(Lease("s", "l")))); got != 2 {
		t.Errorf("%d requests of m without the Lease", got)
	}
	if got := len(set.Where(WithCode(429))); got != 1 {
		t.Errorf("%d responses 429", got)
	}
	groups := GroupBy(set.Events, ByRequest)
	if len(groups) != 3 || groups[0].Count != 2 || strings.Join(groups[0].Words, " ") != "get leases.coordination.k8s.io 200" {
		t.Errorf("%+v", groups)
	}
	found := fmt.Sprint(groups)
	if !strings.Contains(found, "/readyz 429") || !strings.Contains(found, "patch things.g/status -") {
		t.Errorf("%s", found)
	}
}

func TestThePolicyIsOneThatAPIServersTake(t *testing.T) {
	var policy auditv1.Policy
	if err := yaml.UnmarshalStrict([]byte(Policy), &policy); err != nil {
		t.Fatal(err)
	}
	if policy.Kind != "Policy" || policy.APIVersion != auditv1.SchemeGroupVersion.String() || len(policy.Rules) != 1 || policy.Rules[0].Level != auditv1.LevelMetadata || len(policy.Rules[0].Users) != 0 {
		t.Errorf("%+v", policy)
	}
	if len(policy.OmitStages) != 1 || policy.OmitStages[0] != auditv1.StageRequestReceived {
		t.Errorf("omitted stages are %v", policy.OmitStages)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(text("1", "ResponseComplete", "m", "get", 1, 200)), true)
	f.Add([]byte("{}\n\n{\"kind\":\"Event\"}\n"), false)
	f.Add([]byte("{"), true)
	f.Fuzz(func(t *testing.T, data []byte, open bool) {
		log, err := Parse("a", bytes.NewReader(data), open)
		if err != nil {
			t.Fatal(err)
		}
		if whole := bytes.Count(data, []byte("\n")); log.Lines != whole {
			t.Fatalf("%d lines read, %d there", log.Lines, whole)
		}
		seen := 0
		for _, defect := range log.Defects {
			if strings.HasPrefix(defect.Message, "line ") {
				seen++
			}
		}
		if len(log.Events)+seen != log.Lines {
			t.Fatalf("%d events and %d defects of %d lines", len(log.Events), seen, log.Lines)
		}
		Merge(log, log).Check(1, start, start)
	})
}
