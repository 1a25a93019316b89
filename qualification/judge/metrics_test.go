package judge_test

import (
	"strings"
	"testing"

	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// A metric of the vocabulary whose evidence was never taken must come to inconclusive with a reason that names what is
// missing, whatever statistic, window and bound it is declared with: never to a pass, and never to a crash.
func TestEveryMetricWithoutItsEvidenceIsInconclusiveAndSaysWhatIsMissing(t *testing.T) {
	missing := map[verdict.Code]bool{verdict.SourceMissing: true, verdict.AuditMissing: true, verdict.NoSamples: true, verdict.FaultMissing: true}
	for _, metric := range profile.Metrics() {
		for _, bound := range []profile.Bound{atMost(1e9), atLeast(0)} {
			for _, window := range []profile.WindowKind{profile.WholeRun, profile.EachMeasurement, profile.Sliding} {
				population := "anything"
				if known := metric.Populations(); len(known) > 0 {
					population = known[0]
				}
				target := profile.Target{Metric: metric, Statistic: profile.Max, Bound: bound, Population: population, Window: profile.Window{Over: window, Length: 60e9}}
				judged := one(t, declared(target), judge.Evidence{Ledgers: []judge.Ledger{ledger(true)}})
				if metric == profile.IncompleteStreams {
					// The ledger itself is a stream, so that something is known even here.
					if judged.N != 1 {
						t.Errorf("%s: %s", metric, come(judged))
					}
					continue
				}
				if judged.Verdict.State != verdict.Inconclusive || judged.Value != nil || !missing[judged.Verdict.Reasons[0].Code] {
					t.Errorf("%s over %s: %s: %v", metric, window, come(judged), judged.Verdict.Reasons)
				}
				for _, reason := range judged.Verdict.Reasons {
					if reason.Code == verdict.MetricUnavailable {
						t.Errorf("the judge does not know the metric %s", metric)
					}
					if reason.Code == verdict.SourceMissing && !strings.Contains(reason.Message, "samples/") {
						t.Errorf("%s: the reason names no file: %s", metric, reason.Message)
					}
				}
			}
		}
	}
}

func TestAMetricOutsideTheVocabularyIsInconclusive(t *testing.T) {
	judged := one(t, declared(profile.Target{Metric: "mood", Statistic: profile.Max, Bound: atMost(1), Population: "people"}), judge.Evidence{Ledgers: []judge.Ledger{ledger(false)}})
	if judged.Verdict.State != verdict.Inconclusive || judged.Verdict.Reasons[0].Code != verdict.MetricUnavailable {
		t.Errorf("%s", come(judged))
	}
}
