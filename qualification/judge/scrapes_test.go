package judge_test

import (
	"fmt"
	"slices"
	"testing"

	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/profile/document"
)

// process is one life of a process that is scraped every five seconds; values says what it shows at a moment.
type process struct {
	role     sample.Role
	pod      string
	started  float64
	until    float64 // its last reading, at most; 0 for no end
	restarts int
	killed   bool
	values   func(seconds float64) map[string]float64
}

func scrape(processes ...process) []sample.Scrape {
	var list []sample.Scrape
	every(func(seconds float64) {
		for _, p := range processes {
			if seconds-1 < p.started || p.until != 0 && seconds > p.until {
				continue
			}
			list = append(list, sample.Scrape{Reading: read(seconds), OutOfMemory: p.killed, Values: p.values(seconds),
				Process: sample.Process{Role: p.role, Pod: p.pod, UID: "uid-" + p.pod, Started: at(p.started), Restarts: p.restarts}})
		}
	})
	return list
}

func always(values map[string]float64) func(float64) map[string]float64 {
	return func(float64) map[string]float64 { return values }
}

func managers(values func(seconds float64) map[string]float64) []process {
	return []process{{role: sample.Manager, pod: "manager-1", started: -100, values: values}, {role: sample.Manager, pod: "manager-2", started: -100, values: values}}
}

// restarted is two managers of which the first begins anew at 300 s, when its counter counts from zero again.
func restarted(name string, rate float64) []process {
	rising := func(from float64) func(float64) map[string]float64 {
		return func(seconds float64) map[string]float64 { return map[string]float64{name: (seconds - from) * rate} }
	}
	return []process{
		{role: sample.Manager, pod: "manager-1", started: -100, until: 296, values: rising(-100)},
		{role: sample.Manager, pod: "manager-1", started: 298, restarts: 1, values: rising(298)},
		{role: sample.Manager, pod: "manager-2", started: -100, values: rising(-100)},
	}
}

const throttled = `rest_client_rate_limiter_duration_seconds_sum{host="api",verb="GET"}`

func throttling(bound float64, exclude ...profile.FaultClass) profile.Target {
	return profile.Target{Metric: profile.ClientThrottling, Statistic: profile.Max, Bound: atMost(bound), Population: profile.PopulationProcess,
		Window: profile.Window{Over: profile.Sliding, Length: document.Duration(60e9)}, Exclude: exclude}
}

func failed(list []sample.Scrape, at int) []sample.Scrape {
	list = slices.Clone(list)
	list[at].Failed, list[at].Values = "connection refused", nil
	return list
}

func TestCounters(t *testing.T) {
	steps := func(seconds float64) map[string]float64 { // two seconds of throttling, at 100 s and at 130 s, for each manager
		value := 0.0
		if seconds >= 100 {
			value += 2
		}
		if seconds >= 130 {
			value += 2
		}
		return map[string]float64{throttled: value, `other{}`: 9}
	}
	fell := func(seconds float64) map[string]float64 {
		if seconds >= 300 {
			return map[string]float64{throttled: 1}
		}
		return map[string]float64{throttled: 5}
	}
	slow := func(seconds float64) map[string]float64 { return map[string]float64{throttled: seconds + 100} }
	rejected := func(value float64) []process {
		return []process{{role: sample.APIServer, pod: "control-plane", started: -100, values: func(seconds float64) map[string]float64 {
			values := map[string]float64{`apiserver_flowcontrol_dispatched_requests_total{flow_schema="x"}`: seconds}
			if value > 0 {
				values[`apiserver_flowcontrol_rejected_requests_total{reason="queue-full"}`] = 7
			}
			if value > 0 && seconds > 300 {
				values[`apiserver_flowcontrol_rejected_requests_total{reason="time-out"}`] = value
			}
			return values
		}}}
	}
	rejections := profile.Target{Metric: profile.PriorityRejections, Statistic: profile.Sum, Bound: atMost(0), Population: profile.PopulationServer}
	runMetered(t, map[string]metered{
		"should add up a window over all managers":          {target: throttling(8), set: sample.Set{Processes: scrape(managers(steps)...)}, want: "pass, 8 of 1"},
		"should fail above the bound":                       {target: throttling(7.9), set: sample.Set{Processes: scrape(managers(steps)...)}, want: "fail (product), 8 of 1, bound-exceeded"},
		"should take managers apart where that is declared": {target: func() profile.Target { t := throttling(4); t.Per = profile.PerProcess; return t }(), set: sample.Set{Processes: scrape(managers(steps)...)}, want: "pass, 4 of 2"},
		"should know an unmoved counter as zero":            {target: throttling(0), set: sample.Set{Processes: scrape(managers(always(map[string]float64{throttled: 40}))...)}, want: "pass, 0 of 1"},
		"should not know what lies between two readings":    {target: throttling(125), set: sample.Set{Processes: scrape(managers(slow)...)}, want: "inconclusive (harness), 140 of 1, undecided", contains: "lies between"},
		"should not read a reset as a negative amount":      {target: throttling(100), set: sample.Set{Processes: scrape(restarted(throttled, 0.1)...)}, want: "inconclusive (harness), 11.2 of 1, counter-reset, undecided", contains: "began anew"},
		"should fail on what is left beside a reset":        {target: throttling(5), set: sample.Set{Processes: scrape(restarted(throttled, 0.1)...)}, want: "fail (product), 11.2 of 1, bound-exceeded, counter-reset"},
		"should see a counter fall within one life":         {target: throttling(100), set: sample.Set{Processes: scrape(managers(fell)...)}, want: "inconclusive (harness), 2 of 1, counter-reset, undecided", contains: "fell from 5 to 1"},
		"should not take an absent series for zero":         {target: throttling(100), set: sample.Set{Processes: scrape(managers(always(map[string]float64{"go_goroutines": 1}))...)}, want: "inconclusive (harness), series-missing", contains: "does not report"},
		"should miss a manager":                             {target: throttling(100), set: sample.Set{Processes: scrape(managers(steps)[:1]...)}, want: "inconclusive (harness), 4 of 1, process-missing, undecided", contains: "readings of 1 processes"},
		"should see a manager too many":                     {target: throttling(100), set: sample.Set{Processes: scrape(append(managers(steps), process{role: sample.Manager, pod: "manager-3", started: -50, values: steps})...)}, want: "inconclusive (harness), 12 of 1, process-missing, undecided"},
		"should see a reading that failed":                  {target: throttling(100), set: sample.Set{Processes: failed(scrape(managers(steps)...), 60)}, want: "inconclusive (harness), 8 of 1, reading-failed, undecided", contains: "connection refused"},
		"should see a hole":                                 {target: throttling(100), set: sample.Set{Processes: slices.Delete(scrape(managers(steps)...), 60, 70)}, want: "inconclusive (harness), 8 of 1, readings-gap, undecided", contains: "nobody read"},
		"should see readings end early":                     {target: throttling(100), set: sample.Set{Processes: scrape(managers(steps)...)[:200]}, want: "inconclusive (harness), 8 of 1, readings-gap, undecided"},
		"should see a process end": {target: throttling(100), want: "inconclusive (harness), 8 of 1, readings-gap, undecided", set: func() sample.Set {
			two := managers(steps)
			two[0].until = 300
			return sample.Set{Processes: scrape(two...)}
		}()},
		"should leave out a restart in an excluded fault": {target: throttling(9, profile.FaultRegistryOutage), outage: true, want: "pass, 8 of 2", set: func() sample.Set {
			two := managers(steps)
			two[0].until = 249
			two = append(two, process{role: sample.Manager, pod: "manager-1", started: 250, restarts: 1, values: func(float64) map[string]float64 { return map[string]float64{throttled: 0} }})
			return sample.Set{Processes: scrape(two...)}
		}()},
		"should count no rejection as zero beside others": {target: rejections, set: sample.Set{Processes: scrape(rejected(0)...)}, want: "pass, 0 of 1"},
		"should count rejections":                         {target: rejections, set: sample.Set{Processes: scrape(rejected(3)...)}, want: "fail (product), 3 of 1, bound-exceeded"},
		"should not know rejections of a silent server": {target: rejections, want: "inconclusive (harness), series-missing",
			set: sample.Set{Processes: scrape(process{role: sample.APIServer, pod: "control-plane", started: -100, values: always(map[string]float64{"up": 1})})}},
	})
}

func bucketed(name, labels string, counts ...float64) map[string]float64 {
	values := map[string]float64{}
	for i, bound := range []string{"0.5", "1", "5", "+Inf"} {
		values[fmt.Sprintf(`%s_bucket{%sle=%q}`, name, labels, bound)] = counts[i]
	}
	return values
}

func TestHistograms(t *testing.T) {
	const queue, admission = "workqueue_queue_duration_seconds", "apiserver_admission_webhook_admission_duration_seconds"
	delay := func(bound float64, least int) profile.Target {
		return profile.Target{Metric: profile.QueueDelay, Statistic: profile.P95, Bound: atMost(bound), Population: profile.PopulationQueued, MinSamples: least}
	}
	rise := func(counts ...float64) []process {
		return managers(func(seconds float64) map[string]float64 {
			if seconds < 100 {
				return bucketed(queue, `name="schema",`, 0, 0, 0, 0)
			}
			return bucketed(queue, `name="schema",`, counts...)
		})
	}
	webhooks := profile.Target{Metric: profile.AdmissionLatency, Statistic: profile.P95, Bound: atMost(1), Population: profile.PopulationAdmission, MinSamples: 20, Per: profile.PerServer}
	server := func(pod string, counts ...float64) process {
		return process{role: sample.APIServer, pod: pod, started: -100, values: func(seconds float64) map[string]float64 {
			if seconds < 100 {
				counts := bucketed(admission, `name="vapproval.operator.ptah.run",type="validating",`, 0, 0, 0, 0)
				return counts
			}
			values := bucketed(admission, `name="vapproval.operator.ptah.run",type="validating",`, counts...)
			for series, count := range bucketed(admission, `name="slow.example.com",type="validating",`, 0, 0, 0, 500) {
				values[series] = count
			}
			return values
		}}
	}
	planes := func(n int) func(*profile.Profile, *judge.Evidence) {
		return func(p *profile.Profile, _ *judge.Evidence) { p.Cluster.ControlPlanes = n }
	}
	changed := managers(func(seconds float64) map[string]float64 {
		if seconds < 100 {
			return map[string]float64{queue + `_bucket{le="1"}`: 1, queue + `_bucket{le="+Inf"}`: 1}
		}
		return bucketed(queue, "", 10, 20, 30, 30)
	})
	runMetered(t, map[string]metered{
		"should know a percentile by its bucket":           {target: delay(1, 20), set: sample.Set{Processes: scrape(rise(10, 100, 100, 100)...)}, want: "pass, 1 of 200"},
		"should fail a percentile beyond its bucket":       {target: delay(1, 20), set: sample.Set{Processes: scrape(rise(10, 90, 100, 100)...)}, want: "fail (product), 5 of 200, bound-exceeded"},
		"should not decide within a bucket":                {target: delay(3, 20), set: sample.Set{Processes: scrape(rise(10, 90, 100, 100)...)}, want: "inconclusive (harness), 5 of 200, undecided", contains: "lies between 1 and 5"},
		"should fail beyond the last bucket":               {target: delay(4, 20), set: sample.Set{Processes: scrape(rise(10, 20, 30, 100)...)}, want: "fail (product), 5 of 200, bound-exceeded"},
		"should not decide beyond the last bucket":         {target: delay(30, 20), set: sample.Set{Processes: scrape(rise(10, 20, 30, 100)...)}, want: "inconclusive (harness), 5 of 200, undecided", contains: "may be more"},
		"should demand enough observations":                {target: delay(1, 300), set: sample.Set{Processes: scrape(rise(10, 100, 100, 100)...)}, want: "inconclusive (harness), 1 of 200, too-few-samples"},
		"should not take nothing observed for fast":        {target: delay(1, 20), set: sample.Set{Processes: scrape(rise(0, 0, 0, 0)...)}, want: "inconclusive (harness), no-samples"},
		"should not take no buckets for fast":              {target: delay(1, 20), set: sample.Set{Processes: scrape(managers(always(map[string]float64{"up": 1}))...)}, want: "inconclusive (harness), series-missing"},
		"should not subtract other buckets":                {target: delay(1, 1), set: sample.Set{Processes: scrape(changed...)}, want: "inconclusive (harness), counter-reset, series-missing"},
		"should not read a reset as a negative number":     {target: delay(1, 1), set: sample.Set{Processes: scrape(restarted(queue+`_bucket{le="1"}`, 1)...)}, want: "inconclusive (harness), 1 of 1197, counter-reset"},
		"should take each API server apart":                {target: webhooks, set: sample.Set{Processes: scrape(server("a", 100, 100, 100, 100), server("b", 50, 100, 100, 100))}, change: planes(2), want: "pass, 1 of 200"},
		"should fail on one slow API server":               {target: webhooks, set: sample.Set{Processes: scrape(server("a", 100, 100, 100, 100), server("b", 50, 50, 100, 100))}, change: planes(2), want: "fail (product), 5 of 200, bound-exceeded"},
		"should demand enough calls on each server":        {target: webhooks, set: sample.Set{Processes: scrape(server("a", 100, 100, 100, 100), server("b", 5, 5, 5, 5))}, change: planes(2), want: "inconclusive (harness), 0.5 of 105, too-few-samples", contains: "for b"},
		"should miss an API server":                        {target: webhooks, set: sample.Set{Processes: scrape(server("a", 100, 100, 100, 100))}, change: planes(2), want: "inconclusive (harness), 0.5 of 100, process-missing"},
		"should not count the webhooks of other operators": {target: webhooks, set: sample.Set{Processes: scrape(server("a", 100, 100, 100, 100))}, want: "pass, 0.5 of 100"},
	})
}

func TestManagers(t *testing.T) {
	mebibytes := func(first, last float64) func(float64) map[string]float64 {
		return func(seconds float64) map[string]float64 {
			return map[string]float64{"process_resident_memory_bytes": (first + (last-first)*seconds/600) * 1048576, "process_cpu_seconds_total": 50 + seconds*0.25}
		}
	}
	memory := profile.Target{Metric: profile.ManagerMemory, Statistic: profile.Max, Bound: atMost(192), Population: profile.PopulationProcess, MinSamples: 2}
	growth := profile.Target{Metric: profile.ManagerMemoryGrowth, Statistic: profile.Max, Bound: atMost(10), Population: profile.PopulationProcess, MinSamples: 2}
	cpu := profile.Target{Metric: profile.ManagerCPU, Statistic: profile.Max, Bound: atMost(1), Population: profile.PopulationScenario, Window: profile.Window{Over: profile.EachMeasurement}}
	restarts := profile.Target{Metric: profile.ManagerRestarts, Statistic: profile.Sum, Bound: atMost(0), Population: profile.PopulationProcess}
	killed := profile.Target{Metric: profile.ManagerOutOfMemory, Statistic: profile.Sum, Bound: atMost(0), Population: profile.PopulationProcess}
	checkpoints := func(count int) []sample.Stored {
		var list []sample.Stored
		for i := range count {
			list = append(list, stored(float64(i)*150+100, 10, 0))
		}
		return list
	}
	excluding := func(target profile.Target) profile.Target {
		target.Exclude = []profile.FaultClass{profile.FaultRegistryOutage}
		return target
	}
	dead := func(killed bool) sample.Set {
		two := restarted("up", 0)
		two[1].killed = killed
		return sample.Set{Processes: scrape(two...)}
	}
	inFault := func() sample.Set {
		two := restarted("process_cpu_seconds_total", 0.1)
		two[0].until, two[1].started = 240, 242
		return sample.Set{Processes: scrape(two...)}
	}
	runMetered(t, map[string]metered{
		"should take the most of any manager":          {target: memory, set: sample.Set{Processes: scrape(managers(mebibytes(100, 192))...)}, want: "pass, 192 of 2"},
		"should see too much at one reading":           {target: memory, set: sample.Set{Processes: scrape(managers(mebibytes(100, 193))...)}, want: "fail (product), 193 of 2, bound-exceeded"},
		"should demand both managers":                  {target: memory, set: sample.Set{Processes: scrape(managers(mebibytes(100, 100))[:1]...)}, want: "inconclusive (harness), 100 of 1, process-missing, too-few-samples"},
		"should compare the last three checkpoints":    {target: growth, set: sample.Set{Processes: scrape(managers(mebibytes(100, 110))...), Inventory: checkpoints(3)}, want: "pass, 4.918 of 2"},
		"should see growth":                            {target: growth, set: sample.Set{Processes: scrape(managers(mebibytes(100, 150))...), Inventory: checkpoints(4)}, want: "fail (product), 20.69 of 2, bound-exceeded"},
		"should not see growth in two checkpoints":     {target: growth, set: sample.Set{Processes: scrape(managers(mebibytes(100, 150))...), Inventory: checkpoints(2)}, want: "inconclusive (harness), no-samples"},
		"should not see growth without checkpoints":    {target: growth, set: sample.Set{Processes: scrape(managers(mebibytes(100, 150))...)}, want: "inconclusive (harness), source-missing"},
		"should add up the processors of all managers": {target: cpu, set: sample.Set{Processes: scrape(managers(mebibytes(1, 1))...)}, want: "pass, 0.5 of 1"},
		"should see too many processors":               {target: func() profile.Target { t := cpu; t.Bound = atMost(0.4); return t }(), set: sample.Set{Processes: scrape(managers(mebibytes(1, 1))...)}, want: "fail (product), 0.5 of 1, bound-exceeded"},
		"should leave out the scenario of a fault":     {target: excluding(cpu), outage: true, set: sample.Set{Processes: scrape(managers(mebibytes(1, 1))...)}, want: "pass, 0.5 of 1"},
		"should not know the processors over a reset":  {target: cpu, set: sample.Set{Processes: scrape(restarted("process_cpu_seconds_total", 0.1)...)}, want: "inconclusive (harness), counter-reset"},
		"should see no restart":                        {target: restarts, set: sample.Set{Processes: scrape(managers(mebibytes(1, 1))...)}, want: "pass, 0 of 2"},
		"should see a restart":                         {target: restarts, set: dead(false), want: "fail (product), 1 of 2, bound-exceeded"},
		"should see two restarts between readings": {target: restarts, want: "fail (product), 2 of 2, bound-exceeded", set: func() sample.Set {
			two := restarted("up", 0)
			two[1].restarts = 2
			return sample.Set{Processes: scrape(two...)}
		}()},
		"should not see a restart of an excluded fault": {target: excluding(restarts), outage: true, set: inFault(), want: "pass, 0 of 2"},
		"should see a Pod that came in place of another": {target: restarts, want: "fail (product), 1 of 3, bound-exceeded, process-missing, readings-gap", set: func() sample.Set {
			two := restarted("up", 0)
			two[1].pod = "manager-9"
			return sample.Set{Processes: scrape(two...)}
		}()},
		"should see that the kernel killed one": {target: killed, set: dead(true), want: "fail (product), 1 of 2, bound-exceeded"},
		"should tell a restart from a kill":     {target: killed, set: dead(false), want: "pass, 0 of 2"},
	})
}

func stored(seconds, mebibytes float64, broken int) sample.Stored {
	plans, pins, size := 12, 20, int64(mebibytes*1048576)
	return sample.Stored{Reading: read(seconds), Plans: &plans, PayloadBytes: &size, Pins: &pins, BrokenPins: &broken}
}

func TestPodsAndPlans(t *testing.T) {
	pods := func(peak int) []sample.PodCount {
		var list []sample.PodCount
		every(func(seconds float64) {
			running, pending := 3, 0
			if seconds == 300 {
				running, pending = peak, peak
			}
			list = append(list, sample.PodCount{Reading: read(seconds), Running: &running, Pending: &pending})
		})
		return list
	}
	running := profile.Target{Metric: profile.RunningOperations, Statistic: profile.Max, Bound: atMost(20), Population: profile.PopulationReading, MinSamples: 100}
	pending := profile.Target{Metric: profile.PendingOperations, Statistic: profile.Max, Bound: atMost(20), Population: profile.PopulationReading, MinSamples: 100}
	retained := profile.Target{Metric: profile.RetainedPlans, Statistic: profile.Max, Bound: atMost(128), Population: profile.PopulationCheckpoint, MinSamples: 3}
	growth := profile.Target{Metric: profile.RetainedPlansGrowth, Statistic: profile.Max, Bound: atMost(0), Population: profile.PopulationCheckpoint, MinSamples: 3}
	pins := profile.Target{Metric: profile.BrokenPins, Statistic: profile.Sum, Bound: atMost(0), Population: profile.PopulationCheckpoint, MinSamples: 3}
	plans := func(sizes ...float64) []sample.Stored {
		var list []sample.Stored
		for i, size := range sizes {
			list = append(list, stored(float64(i)*100+50, size, 0))
		}
		return list
	}
	failedOne := append(plans(1, 1, 1), sample.Stored{Reading: sample.Reading{From: at(500), To: at(501), Failed: "timeout"}})
	runMetered(t, map[string]metered{
		"should count running Pods":           {target: running, set: sample.Set{Pods: pods(20)}, want: "pass, 20 of 121"},
		"should see one Pod too many":         {target: running, set: sample.Set{Pods: pods(21)}, want: "fail (product), 21 of 121, bound-exceeded"},
		"should count pending Pods":           {target: pending, set: sample.Set{Pods: pods(20)}, want: "pass, 20 of 121"},
		"should see too many pending Pods":    {target: pending, set: sample.Set{Pods: pods(21)}, want: "fail (product), 21 of 121, bound-exceeded"},
		"should demand the declared readings": {target: running, set: sample.Set{Pods: pods(20)[:60]}, want: "inconclusive (harness), 3 of 59, readings-gap, too-few-samples"},
		"should take the largest checkpoint":  {target: retained, set: sample.Set{Inventory: plans(128, 3, 5)}, want: "pass, 128 of 3"},
		"should see a checkpoint too large":   {target: retained, set: sample.Set{Inventory: plans(128.5, 3, 5)}, want: "fail (product), 128.5 of 3, bound-exceeded"},
		"should see a checkpoint that failed": {target: retained, set: sample.Set{Inventory: failedOne}, want: "inconclusive (harness), 1 of 3, reading-failed", contains: "timeout"},
		"should miss a declared maintenance":  {target: retained, set: sample.Set{Inventory: plans(1, 1, 1)}, change: func(p *profile.Profile, _ *judge.Evidence) { p.Workload.Maintenance = &profile.Rounds{Rounds: 9} }, want: "inconclusive (harness), 1 of 3, too-few-samples"},
		"should see no growth at the end":     {target: growth, set: sample.Set{Inventory: plans(1, 7, 7, 6)}, want: "pass, 0 of 3"},
		"should see growth at the end":        {target: growth, set: sample.Set{Inventory: plans(9, 7, 7, 8)}, want: "fail (product), 1 of 3, bound-exceeded"},
		"should not see growth in two":        {target: growth, set: sample.Set{Inventory: plans(7, 7)}, want: "inconclusive (harness), no-samples"},
		"should find every pin":               {target: pins, set: sample.Set{Inventory: plans(1, 1, 1)}, want: "pass, 0 of 3"},
		"should see a broken pin":             {target: pins, set: sample.Set{Inventory: append(plans(1, 1), stored(400, 1, 1))}, want: "fail (product), 1 of 3, bound-exceeded"},
	})
}
