package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/gate"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/record"
)

// gathering collects what is offered to the gate.
type gathering struct {
	keys    []*record.Verifier
	seen    map[string]bool // files and run directories taken already, by their real path
	cells   []gathered
	runs    []givenRun
	offered []gate.Offered // what could not be read as a cell
	met     int            // runs, records and cells met, taken already or not
}

// gathered is a signed cell and where it was found.
type gathered struct {
	source string
	cell   *record.VerifiedCell
}

// givenRun is a run directory of which every byte was checked, and what it comes to when it is judged now.
type givenRun struct {
	dir       string
	dossier   *dossier.Dossier
	judgement judge.Judgement
}

// gatherCells reads everything that the given files and folders offer. What is wrong with an offer becomes part of it;
// only a path that is not there or cannot be read at all is an error.
func gatherCells(ctx context.Context, keys []*record.Verifier, paths []string) ([]gate.Offered, error) {
	g := &gathering{keys: keys, seen: map[string]bool{}}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, Exit(ExitUsage, fmt.Errorf("cannot read %s: %w, check the path", path, reason(err)))
		}
		before := g.met
		if info.IsDir() {
			err = g.folder(ctx, path)
		} else {
			err = g.file(ctx, path)
		}
		if err != nil {
			return nil, err
		}
		if g.met == before {
			g.problem(path, matrix.Cell{}, gate.Unreadable, path+" holds no run, no record and no signed cell")
		}
	}
	return g.offers(), nil
}

func (g *gathering) problem(source string, cell matrix.Cell, code gate.Code, message string) {
	g.offered = append(g.offered, gate.Offered{Source: source, Cell: cell, Problem: &gate.Problem{Code: code, Message: message}})
}

// folder takes every record, cell and run below a folder. It follows no links.
func (g *gathering) folder(ctx context.Context, dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return Exit(ExitUsage, fmt.Errorf("cannot read %s: %w", path, reason(err)))
		case entry.IsDir() && isRun(path):
			g.run(path)
			return filepath.SkipDir
		case entry.Type().IsRegular() && filepath.Ext(path) == ".json":
			return g.file(ctx, path)
		}
		return nil
	})
}

// isRun says whether a folder is that of a run, closed or not.
func isRun(dir string) bool {
	return isFile(filepath.Join(dir, "run.json"))
}

// once says whether this path was not taken before, so that overlapping arguments are no duplicates.
func (g *gathering) once(path string) bool {
	g.met++
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		resolved = path
	}
	if g.seen[resolved] {
		return false
	}
	g.seen[resolved] = true
	return true
}

func (g *gathering) run(dir string) {
	if !g.once(dir) {
		return
	}
	d, err := dossier.Load(dir)
	switch {
	case errors.Is(err, evidence.ErrTampered):
		g.problem(dir, matrix.Cell{}, gate.Altered, oneSentence(err))
	case err != nil:
		g.problem(dir, matrix.Cell{}, gate.Unreadable, oneSentence(err))
	default:
		g.runs = append(g.runs, givenRun{dir: dir, dossier: d, judgement: d.Judge()})
	}
}

// file takes a record or a signed cell, and passes over what is neither.
func (g *gathering) file(ctx context.Context, path string) error {
	data, err := readInput(path)
	if err != nil {
		return err
	}
	kind := record.KindOf(data)
	switch name := filepath.Base(path); { // a file damaged beyond reading is still what its name says
	case kind != record.KindOther:
	case name == record.FileName:
		kind = record.KindRecord
	case strings.HasSuffix(name, record.CellSuffix):
		kind = record.KindCell
	}
	switch {
	case kind != record.KindRecord && kind != record.KindCell:
	case !g.once(path):
	case kind == record.KindRecord:
		g.record(ctx, path, data)
	default:
		cell, err := record.VerifyCell(ctx, data, g.keys)
		if err != nil {
			g.problem(path, record.ClaimedCell(data), codeOf(err), oneSentence(err))
			return nil
		}
		g.cells = append(g.cells, gathered{source: path, cell: cell})
	}
	return nil
}

func (g *gathering) record(ctx context.Context, path string, data []byte) {
	verified, err := record.Verify(ctx, data, record.Checks{Keys: g.keys})
	if err == nil {
		for _, cell := range verified.Statements() {
			g.cells = append(g.cells, gathered{source: path, cell: cell})
		}
		return
	}
	claimed := false
	if claims, readable := record.Inspect(data); readable == nil {
		for _, cell := range claims.Judgements() {
			if cell.Root != "" {
				g.problem(path, cell.Cell, codeOf(err), fmt.Sprintf("cell %s: %s", cell.Cell.Key, oneSentence(err)))
				claimed = true
			}
		}
	}
	if !claimed {
		g.problem(path, matrix.Cell{}, codeOf(err), oneSentence(err))
	}
}

// codeOf says by which rule of the gate a refusal of a record counts.
func codeOf(err error) gate.Code {
	var refusal *record.Refusal
	if !errors.As(err, &refusal) {
		return gate.Unreadable
	}
	switch refusal.Code {
	case record.RefusedUnsigned, record.RefusedKey:
		return gate.Unsigned
	case record.RefusedAltered:
		return gate.Altered
	case record.RefusedStatement:
		return gate.Unreadable
	case record.RefusedEvidence, record.RefusedJudgement:
		return gate.EvidenceDiffer
	default:
		return gate.Contradicts
	}
}

func oneSentence(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// offers turns what was gathered into offers: the signed cells, held to the evidence where that was given, and the cells
// of the given runs that nobody signed.
func (g *gathering) offers() []gate.Offered {
	offers := g.offered
	signed := map[string]bool{}
	for _, found := range g.cells {
		offer := offerOf(found.source, found.cell, true)
		facts := found.cell.Facts()
		signed[facts.Run+" "+facts.Root] = true
		for _, run := range g.runs {
			if facts.Root == "" || run.dossier.Root != facts.Run {
				continue
			}
			if err := found.cell.CheckEvidence(run.dossier, run.judgement); err != nil {
				offer.Problem = &gate.Problem{Code: codeOf(err), Message: oneSentence(err)}
			}
		}
		offers = append(offers, offer)
	}
	for _, run := range g.runs {
		cells, err := record.UnsignedCells(run.dossier, run.judgement)
		if err != nil {
			offers = append(offers, gate.Offered{Source: run.dir, Problem: &gate.Problem{Code: gate.Unreadable, Message: oneSentence(err)}})
		}
		for _, cell := range cells {
			if facts := cell.Facts(); !signed[facts.Run+" "+facts.Root] {
				offers = append(offers, offerOf(run.dir, cell, false))
			}
		}
	}
	return offers
}

func offerOf(source string, cell *record.VerifiedCell, signed bool) gate.Offered {
	facts := cell.Facts()
	return gate.Offered{Source: source, Cell: facts.Cell, Signed: signed, Profile: facts.Profile, Subject: facts.Subject, Root: facts.Root, Cluster: facts.Cluster,
		Shown: cell.PassedTests, Verdict: facts.Verdict, Unbound: facts.Unbound()}
}
