package dossier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"sort"
	"strings"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/ledger"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/profile"
)

// Dossier is everything a closed run says, checked byte by byte.
type Dossier struct {
	RunID       string
	CreatedAt   time.Time
	Root        string // digest over the whole run
	Profile     *profile.Profile
	ProfileFile string // digest of the profile as bytes
	Suites      *catalogue.Suites
	Harness     Harness
	Expected    []matrix.Cell
	Cells       []CellFile
	NotRun      map[string]string // key of a cell to why it was not run
}

// CellFile is the finished evidence of one cell.
type CellFile struct {
	Evidence judge.Evidence
	Release  Release
	Lab      Lab
	Files    []evidence.Entry // everything the cell left, names relative to it
}

// Load checks a closed run and reads it. Errors that wrap evidence.ErrTampered mean altered evidence.
func Load(dir string) (*Dossier, error) {
	snapshot, err := evidence.ReadRun(dir)
	if err != nil {
		return nil, err
	}
	d := &Dossier{RunID: snapshot.Identity.ID, CreatedAt: snapshot.Identity.CreatedAt, Root: snapshot.Root}
	if err := d.declarations(snapshot); err != nil {
		return nil, fmt.Errorf("run %s: %w", d.RunID, err)
	}
	if d.NotRun, err = Reasons(snapshot); err != nil {
		return nil, fmt.Errorf("run %s: %w", d.RunID, err)
	}
	for _, key := range cellKeys(snapshot) {
		finished, ok := snapshot.FinishedCell(key)
		if !ok {
			continue
		}
		file, err := loadCell(snapshot, finished)
		if err != nil {
			return nil, fmt.Errorf("run %s: cell %s: %w", d.RunID, key, err)
		}
		d.Cells = append(d.Cells, file)
	}
	return d, nil
}

func cellKeys(snapshot *evidence.Snapshot) []string {
	var keys []string
	seen := map[string]bool{}
	for _, cell := range snapshot.Cells() {
		if !seen[cell.Key] {
			keys = append(keys, cell.Key)
		}
		seen[cell.Key] = true
	}
	return keys
}

func (d *Dossier) declarations(snapshot *evidence.Snapshot) error {
	stored := map[string]evidence.Entry{}
	for _, entry := range snapshot.Entries() {
		stored[entry.Name] = entry
	}
	complete, _ := latest(stored)
	prefix := version(max(complete, 1))
	data, err := snapshot.ReadFile(prefix + profileName)
	if err != nil {
		return err
	}
	if d.Profile, err = profile.Decode(prefix+profileName, data); err != nil {
		return err
	}
	d.ProfileFile = evidence.Digest(data)
	if data, err = snapshot.ReadFile(prefix + suitesName); err != nil {
		return err
	}
	if d.Suites, err = catalogue.DecodeSuites(prefix+suitesName, data); err != nil {
		return err
	}
	if data, err = snapshot.ReadFile(prefix + harnessName); err != nil {
		return err
	}
	if err := decodeJSON(prefix+harnessName, data, &d.Harness); err != nil {
		return err
	}
	d.Expected, err = Expected(d.Profile, matricesIn(snapshot, prefix))
	return err
}

func matricesIn(stored Stored, prefix string) func(name string) (*matrix.Matrix, error) {
	return func(name string) (*matrix.Matrix, error) {
		path := prefix + matrixPrefix + name + ".yaml"
		data, err := stored.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return matrix.Decode(path, data)
	}
}

// Asked returns the profile that a run is made under and the cells that it covers, as the run stored them before it ran
// any. It returns nothing where the run had not come so far.
func Asked(run Stored) (*profile.Profile, []matrix.Cell, error) {
	stored := map[string]evidence.Entry{}
	for _, entry := range run.Entries() {
		stored[entry.Name] = entry
	}
	complete, _ := latest(stored)
	if complete == 0 {
		return nil, nil, nil
	}
	prefix := version(complete)
	data, err := run.ReadFile(prefix + profileName)
	if err != nil {
		return nil, nil, err
	}
	p, err := profile.Decode(prefix+profileName, data)
	if err != nil {
		return nil, nil, err
	}
	cells, err := Expected(p, matricesIn(run, prefix))
	return p, cells, err
}

// Expected returns the cells that the coverage of a profile demands. Find returns the matrix of a name.
func Expected(p *profile.Profile, find func(name string) (*matrix.Matrix, error)) ([]matrix.Cell, error) {
	var cells []matrix.Cell
	for _, coverage := range p.Coverage {
		declared, err := find(coverage.Matrix)
		if err != nil {
			return nil, err
		}
		selected, err := declared.Select(coverage.Depth)
		if err != nil {
			return nil, err
		}
		cells = append(cells, selected...)
	}
	return cells, nil
}

func loadCell(snapshot *evidence.Snapshot, cell evidence.CellEntry) (CellFile, error) {
	file := CellFile{Evidence: judge.Evidence{Cell: cell.Key, InputDigest: cell.InputDigest, Root: cell.Root}}
	for name, into := range map[string]any{inputsName: &file.Evidence.Inputs, releaseName: &file.Release} {
		data, err := snapshot.ReadFile(cell.Prefix() + name)
		if err != nil {
			return file, err
		}
		if err := decodeJSON(name, data, into); err != nil {
			return file, err
		}
	}
	data, err := snapshot.ReadFile(cell.Prefix() + labName)
	if err != nil {
		return file, err
	}
	// The lab description has more fields than a record needs.
	if err := json.Unmarshal(data, &file.Lab); err != nil {
		return file, fmt.Errorf("%s: %w", labName, err)
	}
	if err := contradiction(file.Evidence.Inputs, file.Release); err != nil {
		return file, fmt.Errorf("%w: %w", err, evidence.ErrTampered)
	}
	entries := snapshot.EntriesOf(cell)
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		entry := entries[name]
		entry.Name = name
		file.Files = append(file.Files, entry)
	}
	if file.Evidence.Ledgers, err = loadLedgers(snapshot, cell, file.Files); err != nil {
		return file, err
	}
	if file.Evidence.Audit, err = loadAudit(snapshot, cell, file.Files); err != nil {
		return file, err
	}
	if file.Evidence.Samples, err = loadSamples(snapshot, cell, file.Files); err != nil {
		return file, err
	}
	if file.Evidence.Phases, err = loadPhases(snapshot, cell, file.Files); err != nil {
		return file, err
	}
	file.Evidence.Driver, err = loadDriver(snapshot, cell, file.Files)
	return file, err
}

// contradiction refuses a release that is not the one the inputs of the cell name.
func contradiction(inputs matrix.Inputs, release Release) error {
	if !maps.Equal(inputs.Images, release.Images) || inputs.Chart != release.ChartDigest {
		return fmt.Errorf("the release of cell %s is not the one its inputs name", inputs.Cell.Key)
	}
	return nil
}

func loadLedgers(snapshot *evidence.Snapshot, cell evidence.CellEntry, files []evidence.Entry) ([]judge.Ledger, error) {
	var ledgers []judge.Ledger
	for _, entry := range files {
		suite, phase, ok := ledgerOf(entry.Name)
		if !ok {
			continue
		}
		data, err := snapshot.ReadFile(cell.Prefix() + entry.Name)
		if err != nil {
			return nil, err
		}
		loaded := judge.Ledger{Suite: suite, Phase: phase, Whole: true, Digest: entry.Digest}
		loaded.Records, err = scenario.Read(bytes.NewReader(data))
		if err != nil {
			if !isDefect(err) {
				return nil, err
			}
			loaded.Whole, loaded.Problem = false, err.Error()
		}
		ledgers = append(ledgers, loaded)
	}
	return ledgers, nil
}

// ledgerOf says whose ledger an entry of a cell is: that of one phase of a suite, or that of a suite as a whole, which
// is how runs of a single phase were kept at first. What preparation left is nobody's ledger.
func ledgerOf(name string) (suite, phase string, ok bool) {
	segments := strings.Split(name, "/")
	if segments[0] != "suites" || segments[len(segments)-1] != ledger.FileName {
		return "", "", false
	}
	switch len(segments) {
	case 3:
		return segments[1], "", true
	case 4:
		return segments[1], segments[2], true
	}
	return "", "", false
}

// loadAudit reads the audit logs. They are copies of files that an API server may have been writing, so a cut last
// line is expected; whether a log reaches far enough is checked where it is counted.
func loadAudit(snapshot *evidence.Snapshot, cell evidence.CellEntry, files []evidence.Entry) (*judge.Audit, error) {
	var logs []audit.Log
	var digests []string
	for _, entry := range files {
		rest, ok := strings.CutPrefix(entry.Name, auditPrefix)
		if !ok {
			continue
		}
		server, _, _ := strings.Cut(rest, "/")
		content, err := snapshot.Open(cell.Prefix() + entry.Name)
		if err != nil {
			return nil, err
		}
		log, err := audit.Parse(server, content, true)
		_ = content.Close()
		if err != nil {
			return nil, err
		}
		logs, digests = append(logs, log), append(digests, entry.Digest)
	}
	if len(logs) == 0 {
		return nil, nil
	}
	return &judge.Audit{Set: audit.Merge(logs...), Digests: digests}, nil
}

func decodeJSON(name string, data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Judge judges the run under the profile it was run under.
func (d *Dossier) Judge() judge.Judgement { return d.JudgeUnder(d.Profile) }

// JudgeUnder judges the run under another profile, which must be a later revision of the same one for the evidence
// to count.
func (d *Dossier) JudgeUnder(p *profile.Profile) judge.Judgement {
	input := judge.Input{Profile: p, RunUnder: d.Profile, Expected: d.Expected, NotRun: d.NotRun}
	for _, cell := range d.Cells {
		input.Evidence = append(input.Evidence, cell.Evidence)
	}
	return judge.Judge(input)
}

// Cell returns the finished evidence of a cell.
func (d *Dossier) Cell(key string) (CellFile, error) {
	for _, cell := range d.Cells {
		if cell.Evidence.Cell == key {
			return cell, nil
		}
	}
	return CellFile{}, fmt.Errorf("run %s has no finished cell %s: %w", d.RunID, key, fs.ErrNotExist)
}
