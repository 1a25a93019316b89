package judge_test

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/evidence/stream"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// every target of the vocabulary, so that each fold meets each piece of garbage.
func everyTarget(t testing.TB) *profile.Profile {
	t.Helper()
	p, err := profile.Decode("small", []byte(smallProfile))
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range profile.Metrics() {
		for i, bound := range []profile.Bound{atMost(10), atLeast(1)} {
			populations := metric.Populations()
			if len(populations) == 0 {
				populations = []string{profile.PopulationRefresh}
			}
			for _, population := range populations {
				p.Targets = append(p.Targets, profile.Target{ID: string(metric), Requirement: "PA-08", Metric: metric, Statistic: []profile.Statistic{profile.P95, profile.Min}[i], Bound: bound,
					Window: profile.Window{Over: []profile.WindowKind{profile.Sliding, profile.EachMeasurement}[i], Length: 60e9}, Population: population, MinSamples: 1,
					Per: []profile.Grouping{"", profile.PerProcess}[i], Cells: profile.Selection{Matrix: "functional"}})
			}
		}
	}
	return p
}

// raw is evidence as bytes.
type raw struct{ ledger, log, phases, driver, readings []byte }

// evidence reads raw bytes as the loader of a stored run does, with the readings as every source.
func (r raw) evidence(t testing.TB) judge.Evidence {
	t.Helper()
	var e judge.Evidence
	records, err := scenario.Read(bytes.NewReader(r.ledger))
	ledger := judge.Ledger{Suite: "data-plane", Records: records, Whole: err == nil}
	if err != nil {
		ledger.Problem = err.Error()
	}
	e.Ledgers = []judge.Ledger{ledger}
	log, err := audit.Parse("control-plane", bytes.NewReader(r.log), true)
	if err != nil {
		t.Fatal(err)
	}
	e.Audit = &judge.Audit{Set: audit.Merge(log)}
	e.Phases = &phase.Account{}
	if e.Phases.Records, err = phase.Read(bytes.NewReader(r.phases)); err == nil {
		e.Phases.Whole = true
	}
	e.Driver = &driverload.Account{}
	if e.Driver.Start, e.Driver.Samples, err = driverload.Read(bytes.NewReader(r.driver)); err == nil {
		e.Driver.Whole = true
	}
	e.Samples = &sample.Set{}
	for _, source := range sample.Sources() {
		if err := e.Samples.Add(source, "sha256:x", bytes.NewReader(r.readings)); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func judgeRaw(p *profile.Profile, e judge.Evidence) judge.Judgement {
	cell := matrix.Cell{Matrix: "functional", Key: "data-plane", Axes: map[string]string{"suite": "data-plane"}}
	e.Cell = cell.Key
	e.Inputs = matrix.Inputs{Cell: cell, Profile: p.Digest(), Platform: "linux/amd64", Native: true, ControlPlanes: p.Cluster.ControlPlanes}
	e.InputDigest = e.Inputs.Digest()
	return judge.Judge(judge.Input{Profile: p, Expected: []matrix.Cell{cell}, Evidence: []judge.Evidence{e}})
}

func goodRaw(t testing.TB) raw {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", "small-passes", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return raw{ledger: read("ledger.jsonl"), phases: read("cell/phases.jsonl"), driver: read("cell/driver.jsonl"), readings: read("cell/samples/processes.jsonl")}
}

// FuzzJudge judges garbage: it must neither panic, nor pass, nor come to something that cannot be written down.
func FuzzJudge(f *testing.F) {
	good := goodRaw(f)
	f.Add(good.ledger, good.log, good.phases, good.driver, good.readings)
	f.Add([]byte("{}\n"), []byte("{}\n"), []byte("{}\n"), []byte("{}\n"), []byte("{}\n"))
	for _, other := range []string{"stale-notification/cell/samples/alerts.jsonl", "soak-stopped-early/cell/samples/history.jsonl"} {
		data, err := os.ReadFile(filepath.Join("testdata", other))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(good.ledger, good.log, good.phases, good.driver, data)
	}
	p := everyTarget(f)
	f.Fuzz(func(t *testing.T, ledger, log, phases, driver, readings []byte) {
		judgement := judgeRaw(p, raw{ledger, log, phases, driver, readings}.evidence(t))
		if judgement.Verdict.Satisfies() {
			t.Fatal("garbage passes")
		}
		if _, err := json.Marshal(judgement); err != nil {
			t.Fatal(err)
		}
	})
}

// Any byte that is changed in any stream of evidence that passes keeps it from passing: the streams prove themselves.
func TestOneChangedByteInAnyStreamIsNoPass(t *testing.T) {
	p, err := profile.Decode("small", []byte(smallProfile))
	if err != nil {
		t.Fatal(err)
	}
	p.Targets = p.Targets[:1] // alerts have a stream of their own
	good := goodRaw(t)
	if judgement := judgeRaw(p, only(good.evidence(t), sample.Processes)); !judgement.Verdict.Satisfies() {
		t.Fatalf("the evidence as it is does not pass: %v", judgement.Verdict.Reasons)
	}
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewSource(seed))
	for range 100 {
		altered := good
		stream := []*[]byte{&altered.ledger, &altered.phases, &altered.driver, &altered.readings}[random.Intn(4)]
		data := bytes.Clone(*stream)
		data[random.Intn(len(data))] ^= byte(1 + random.Intn(255))
		*stream = data
		if judgeRaw(p, only(altered.evidence(t), sample.Processes)).Verdict.Satisfies() {
			t.Fatalf("seed %d: a changed byte passes", seed)
		}
	}
}

func only(e judge.Evidence, source sample.Source) judge.Evidence {
	e.Samples.Files = map[sample.Source]sample.File{source: e.Samples.Files[source]}
	return e
}

// Lines that are shuffled, repeated, left out and changed within their values, in streams that are whole: the folds meet
// readings that no driver takes.
func TestReadingsThatNoDriverTakesAreNoPassAndNoPanic(t *testing.T) {
	p := everyTarget(t)
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewSource(seed))
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("seed %d: %v", seed, r)
		}
	}()
	for range 40 {
		e := goodRaw(t).evidence(t)
		e.Samples = &sample.Set{}
		for source, from := range map[sample.Source]string{sample.Alerts: "small-passes", sample.Processes: "small-passes", sample.History: "soak-stopped-early"} {
			data, err := os.ReadFile(filepath.Join("testdata", from, "cell", source.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Samples.Add(source, "sha256:x", bytes.NewReader(garbled(random, data))); err != nil {
				t.Fatal(err)
			}
		}
		judgement := judgeRaw(p, e)
		if judgement.Verdict.Satisfies() {
			t.Fatalf("seed %d: garbage passes", seed)
		}
		if _, err := json.Marshal(judgement); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// garbled makes a whole stream of some lines of another, in any order, with some digits of theirs changed.
func garbled(random *rand.Rand, data []byte) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-2] // without the completeness record and the rest after it
	random.Shuffle(len(lines), func(i, j int) {
		if random.Intn(3) == 0 {
			lines[i], lines[j] = lines[j], lines[i]
		}
	})
	var buffer bytes.Buffer
	writer := stream.NewWriter(&buffer)
	for _, line := range lines {
		for range random.Intn(3) {
			changed := bytes.TrimSpace(bytes.Clone(line))
			if at := random.Intn(len(changed)); changed[at] >= '0' && changed[at] <= '9' && random.Intn(2) == 0 {
				changed[at] = byte('0' + random.Intn(10))
			}
			if json.Valid(changed) {
				_ = writer.Append(json.RawMessage(changed)) // a line that is refused is left out
			}
		}
	}
	_, _ = writer.Close() // into memory
	return buffer.Bytes()
}

// A failure that is added to whatever evidence never improves what it comes to.
func TestAFailureAddedToEvidenceNeverImprovesTheJudgement(t *testing.T) {
	p := everyTarget(t)
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewSource(seed))
	for range 25 {
		e := goodRaw(t).evidence(t)
		disturb(random, &e)
		before := judgeRaw(p, e).Verdict
		blame := []scenario.Blame{scenario.BlameProduct, scenario.BlameHarness, scenario.BlameInfrastructure, scenario.BlameUnknown}[random.Intn(4)]
		e.Ledgers = append(e.Ledgers, judge.Ledger{Suite: "data-plane", Whole: true, Records: []scenario.Record{{Scenario: "extra", Start: at(20), End: at(21), Ended: true, Outcome: scenario.OutcomeFail, Blame: blame}}})
		if after := judgeRaw(p, e).Verdict; verdict.Worse(before, after) || after.State != verdict.Fail {
			t.Fatalf("seed %d: %s became %s by a failure", seed, before, after)
		}
	}
}

// disturb takes something away from evidence.
func disturb(random *rand.Rand, e *judge.Evidence) {
	switch random.Intn(6) {
	case 0:
		e.Samples = nil
	case 1:
		e.Driver, e.Phases = nil, nil
	case 2:
		e.Ledgers[0].Records = e.Ledgers[0].Records[:random.Intn(2)]
	case 3:
		e.Ledgers[0].Records[random.Intn(2)].Outcome = scenario.OutcomeNotRun
	case 4:
		e.Samples.Processes = e.Samples.Processes[:random.Intn(len(e.Samples.Processes))]
	default:
		e.Audit = nil
	}
}
