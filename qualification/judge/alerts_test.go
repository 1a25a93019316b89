package judge_test

import (
	"testing"

	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
)

const unsynced = "PtahOperatorUnresolvedViewNotSynced"

func fires(began, arrives float64) sample.Delivery {
	return sample.Delivery{At: at(arrives), Alert: unsynced, Status: sample.Firing, Started: at(began), Fingerprint: "f"}
}

func resolves(began, ended, arrives float64) sample.Delivery {
	return sample.Delivery{At: at(arrives), Alert: unsynced, Status: sample.Resolved, Started: at(began), Ended: at(ended), Fingerprint: "f"}
}

// incident is an incident from 100 to 200 s, with a witness at a moment; none where it is negative.
func incident(witness float64) func(*profile.Profile, *judge.Evidence) {
	return func(_ *profile.Profile, e *judge.Evidence) {
		faulty := ledger(false, scenario.Measurement{Population: unsynced, Subject: "every manager", From: at(100), To: at(200)})
		if witness >= 0 {
			faulty.Records[0].Witnesses = []scenario.Observation{{At: at(witness), Key: "no manager answers"}}
		}
		e.Ledgers = []judge.Ledger{faulty}
	}
}

func TestAlerts(t *testing.T) {
	each := profile.Window{Over: profile.EachMeasurement}
	firing := profile.Target{Metric: profile.AlertFiring, Statistic: profile.Max, Bound: atMost(105), Population: unsynced, Window: each}
	resolution := profile.Target{Metric: profile.AlertResolution, Statistic: profile.Max, Bound: atMost(45), Population: unsynced, Window: each}
	listened := sample.Delivery{At: at(599)}
	set := func(list ...sample.Delivery) sample.Set { return sample.Set{Alerts: append(list, listened)} }
	runMetered(t, map[string]metered{
		"should measure from the incident to the receiver":           {target: firing, set: set(fires(160, 184)), change: incident(110), want: "pass, 84 of 1"},
		"should fail a late notification":                            {target: firing, set: set(fires(160, 206)), change: incident(110), want: "fail (product), 106 of 1, bound-exceeded"},
		"should not take a notification that began before":           {target: firing, set: set(fires(90, 110)), change: incident(110), want: "void (harness), stale-notification", contains: "was firing already"},
		"should not take one that fired before and arrives again":    {target: firing, set: set(fires(50, 60), fires(50, 130)), change: incident(110), want: "void (harness), stale-notification"},
		"should take a fresh one beside an older that resolved":      {target: firing, set: set(fires(20, 30), resolves(20, 40, 50), fires(160, 184)), change: incident(110), want: "pass, 84 of 1"},
		"should fail where the older one resolved and no other came": {target: firing, set: set(fires(20, 30), resolves(20, 40, 50)), change: incident(110), want: "fail (product), alert-not-delivered"},
		"should fail where none came":                                {target: firing, set: set(), change: incident(110), want: "fail (product), alert-not-delivered"},
		"should not fail where nobody listened":                      {target: firing, set: sample.Set{Alerts: []sample.Delivery{{At: at(150)}}}, change: incident(110), want: "inconclusive (harness), readings-gap"},
		"should not take one that began after the recovery":          {target: firing, set: set(fires(210, 220)), change: incident(110), want: "fail (product), alert-not-delivered"},
		"should not take another alert": {target: firing, change: incident(110), want: "fail (product), alert-not-delivered", set: func() sample.Set {
			other := fires(160, 184)
			other.Alert = "Watchdog"
			return set(other)
		}()},
		"should void an incident without a witness":             {target: firing, set: set(fires(160, 184)), change: incident(-1), want: "void (harness), witness-missing"},
		"should void an incident whose witness came before":     {target: firing, set: set(fires(160, 184)), change: incident(99), want: "void (harness), witness-missing"},
		"should void an incident whose witness came after":      {target: firing, set: set(fires(160, 184)), change: incident(201), want: "void (harness), witness-missing"},
		"should not know an alert without an incident":          {target: firing, set: set(fires(160, 184)), want: "inconclusive (harness), fault-missing"},
		"should not know an alert without a receiver":           {target: firing, change: incident(110), want: "inconclusive (harness), source-missing"},
		"should measure from the recovery to the receiver":      {target: resolution, set: set(fires(160, 184), resolves(160, 215, 223)), change: incident(110), want: "pass, 23 of 1"},
		"should fail a late resolution":                         {target: resolution, set: set(fires(160, 184), resolves(160, 230, 246)), change: incident(110), want: "fail (product), 46 of 1, bound-exceeded"},
		"should fail where no resolution came":                  {target: resolution, set: set(fires(160, 184)), change: incident(110), want: "fail (product), alert-not-delivered"},
		"should not fail a resolution that nobody listened to":  {target: resolution, set: sample.Set{Alerts: []sample.Delivery{fires(160, 184), {At: at(230)}}}, change: incident(110), want: "inconclusive (harness), readings-gap"},
		"should not resolve what never fired":                   {target: resolution, set: set(), change: incident(110), want: "inconclusive (harness), fault-missing"},
		"should count a resolution before the recovery as zero": {target: resolution, set: set(fires(110, 120), resolves(110, 180, 190)), change: incident(110), want: "pass, 0 of 1"},
		"should wait for every alert of the incident": {target: resolution, change: incident(110), want: "fail (product), alert-not-delivered", set: func() sample.Set {
			second := fires(165, 190)
			second.Fingerprint = "g"
			return set(fires(160, 184), second, resolves(160, 215, 223))
		}()},
	})
}
