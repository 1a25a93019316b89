package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// identity tells cells of one key in different matrices apart.
func identity(cell matrix.Cell) string { return cell.Matrix + "/" + cell.Key }

// Decide compares what is offered with what is declared. It never fails: whatever is wrong becomes a refusal.
func Decide(declared Declared, offered []Offered) Decision {
	d := &decision{declared: declared, offers: map[string][]Offered{}, skipped: map[string]Offered{}}
	d.result = Decision{Profile: declared.Profile, Subject: maps.Clone(declared.Subject), Cells: []CellDecision{}, Refusals: []Refusal{}}
	d.set()
	for _, offer := range offered {
		d.sort(offer)
	}
	d.release()
	for _, demand := range declared.Cells {
		d.cell(demand)
	}
	d.clusters()
	return d.result
}

type decision struct {
	declared Declared
	offers   map[string][]Offered // of declared cells, by identity
	skipped  map[string]Offered   // statements that a declared cell left no evidence
	result   Decision
}

func (d *decision) refuse(code Code, cell, source, format string, arguments ...any) {
	d.result.Refusals = append(d.result.Refusals, Refusal{Code: code, Cell: cell, Source: source, Message: fmt.Sprintf(format, arguments...)})
}

// set refuses a declaration that nothing could satisfy.
func (d *decision) set() {
	if len(d.declared.Cells) == 0 {
		d.refuse(EmptySet, "", "", "no cell is declared, and nothing is never a pass")
	}
	seen := map[string]bool{}
	for _, demand := range d.declared.Cells {
		if seen[identity(demand.Cell)] {
			d.refuse(Duplicated, demand.Cell.Key, "", "cell %s of matrix %s is declared twice", demand.Cell.Key, demand.Cell.Matrix)
		}
		seen[identity(demand.Cell)] = true
	}
	if !d.declared.Acceptance {
		return
	}
	if d.declared.Profile.Purpose != profile.Acceptance {
		d.refuse(NoAcceptance, "", "", "the profile %s is for %s, and nothing judged under it is an acceptance", d.declared.Profile.Name, d.declared.Profile.Purpose)
	}
	for _, uncovered := range d.declared.Uncovered {
		d.refuse(NoAcceptance, "", "", "the profile %s also covers %s, which are not in this set", d.declared.Profile.Name, uncovered)
	}
}

// sort puts an offer to the cell it is about and refuses one that is about none.
func (d *decision) sort(offer Offered) {
	name := identity(offer.Cell)
	at := slices.IndexFunc(d.declared.Cells, func(demand Demand) bool { return identity(demand.Cell) == name })
	switch {
	case offer.Problem != nil:
		d.refuse(offer.Problem.Code, offer.Cell.Key, offer.Source, "%s", offer.Problem.Message)
		if at >= 0 {
			d.offers[name] = append(d.offers[name], offer)
		}
	case offer.Root == "" && at < 0: // nobody ran it and nobody asked for it
	case offer.Root == "":
		d.skipped[name] = offer
	case at < 0:
		d.refuse(Foreign, offer.Cell.Key, offer.Source, "cell %s of matrix %s is not in the declared set", offer.Cell.Key, offer.Cell.Matrix)
	case !sameDeclaration(offer.Cell, d.declared.Cells[at].Cell):
		d.refuse(Foreign, offer.Cell.Key, offer.Source, "cell %s ran under another declaration of matrix %s: its axes or their attributes differ", offer.Cell.Key, offer.Cell.Matrix)
		d.offers[name] = append(d.offers[name], offer)
	default:
		d.offers[name] = append(d.offers[name], offer)
	}
}

// sameDeclaration compares what decides how a cell runs. Estimates and plans do not.
func sameDeclaration(a, b matrix.Cell) bool {
	return maps.Equal(a.Axes, b.Axes) && maps.Equal(a.Attributes, b.Attributes) && a.Suite() == b.Suite()
}

// cell decides about one declared cell.
func (d *decision) cell(demand Demand) {
	key, offers := demand.Cell.Key, d.offers[identity(demand.Cell)]
	found := CellDecision{Cell: key, Matrix: demand.Cell.Matrix}
	before := len(d.result.Refusals)
	switch len(offers) {
	case 0:
		d.absent(demand)
	case 1:
		found.Source, found.Verdict = offers[0].Source, offers[0].Verdict.String()
	default:
		var sources []string
		for _, offer := range offers {
			sources = append(sources, offer.Source)
		}
		slices.Sort(sources)
		d.refuse(Duplicated, key, sources[0], "cell %s is there %d times, in %s", key, len(offers), strings.Join(sources, ", "))
	}
	problems := false
	for _, offer := range offers {
		if offer.Problem != nil || !sameDeclaration(offer.Cell, demand.Cell) {
			problems = true // refused already
			continue
		}
		d.offer(demand, offer)
	}
	found.Passed = len(offers) == 1 && !problems && len(d.result.Refusals) == before
	d.result.Cells = append(d.result.Cells, found)
}

func (d *decision) absent(demand Demand) {
	key := demand.Cell.Key
	if skipped, said := d.skipped[identity(demand.Cell)]; said {
		d.refuse(Skipped, key, skipped.Source, "cell %s was skipped: it left no evidence", key)
		return
	}
	if len(demand.Cell.Planned) > 0 {
		d.refuse(Missing, key, "", "cell %s is missing: %s", key, strings.Join(demand.Cell.Planned, "; "))
		return
	}
	d.refuse(Missing, key, "", "cell %s of matrix %s is missing: no run and no record of it was given", key, demand.Cell.Matrix)
}

// offer refuses what is wrong with the offer of a declared cell.
func (d *decision) offer(demand Demand, offer Offered) {
	key := demand.Cell.Key
	if !offer.Signed {
		d.refuse(Unsigned, key, offer.Source, "cell %s is not signed, sign its record with `ptah-qualify record sign`", key)
	}
	if want := d.declared.Profile; offer.Profile.Digest != want.Digest || offer.Profile.Name != want.Name {
		age := "another"
		if offer.Profile.Name == want.Name && offer.Profile.Revision < want.Revision {
			age = "an older"
		}
		d.refuse(AnotherProfile, key, offer.Source, "cell %s was judged under %s profile, %s revision %d (%s); %s revision %d (%s) is demanded", key, age,
			offer.Profile.Name, offer.Profile.Revision, offer.Profile.Digest, want.Name, want.Revision, want.Digest)
	}
	if name, is, want := d.differs(offer.Subject); name != "" {
		d.refuse(AnotherRelease, key, offer.Source, "cell %s is about another release: %s is %s, it must be %s", key, name, is, want)
	}
	d.verdict(demand, offer)
	if !d.declared.Acceptance {
		return
	}
	for _, missing := range offer.Unbound {
		d.refuse(NoAcceptance, key, offer.Source, "cell %s is no part of an acceptance: it does not name %s", key, missing)
	}
}

func (d *decision) verdict(demand Demand, offer Offered) {
	key := demand.Cell.Key
	if !offer.Verdict.Satisfies() {
		code := NotPassed
		if offer.Verdict.State == verdict.NotRun {
			code = Skipped
		}
		d.refuse(code, key, offer.Source, "cell %s did not pass: its verdict is %s%s", key, offer.Verdict, firstReason(offer.Verdict))
		d.result.Refusals[len(d.result.Refusals)-1].Verdict = offer.Verdict
		return
	}
	for _, name := range demand.Shown {
		if !slices.Contains(offer.Shown, name) {
			d.refuse(Incomplete, key, offer.Source, "cell %s is stated as passed and does not show %s, which the profile demands of it", key, name)
		}
	}
	if len(demand.Shown) == 0 {
		d.refuse(Incomplete, key, offer.Source, "the profile %s demands nothing of cell %s, and nothing is never a pass", d.declared.Profile.Name, key)
	}
}

func firstReason(v verdict.Verdict) string {
	if len(v.Reasons) == 0 {
		return ""
	}
	return ", " + v.Reasons[0].Subject + ": " + v.Reasons[0].Message
}

// release settles what every cell must be about: what is demanded, and for the rest what the first offer of the first
// declared cell that has one says.
func (d *decision) release() {
	for _, demand := range d.declared.Cells {
		for _, offer := range d.offers[identity(demand.Cell)] {
			if offer.Problem != nil {
				continue
			}
			subject := maps.Clone(offer.Subject)
			if subject == nil {
				subject = map[string]string{}
			}
			maps.Copy(subject, d.declared.Subject)
			d.result.Subject = subject
			return
		}
	}
}

// differs returns the first name by which a subject differs from what every cell must be about.
func (d *decision) differs(subject map[string]string) (name, is, want string) {
	if len(d.result.Subject) == 0 {
		return "its subject", "nothing", "a release"
	}
	names := slices.Collect(maps.Keys(d.result.Subject))
	for other := range subject {
		names = append(names, other)
	}
	slices.Sort(names)
	for _, candidate := range names {
		if subject[candidate] != d.result.Subject[candidate] {
			return candidate, orNothing(subject[candidate]), orNothing(d.result.Subject[candidate])
		}
	}
	return "", "", ""
}

func orNothing(digest string) string {
	if digest == "" {
		return "nothing"
	}
	return digest
}

// clusters refuses, for an acceptance, two cells of one cluster: each runs in a lab of its own.
func (d *decision) clusters() {
	if !d.declared.Acceptance {
		return
	}
	first := map[string]string{}
	for _, demand := range d.declared.Cells {
		for _, offer := range d.offers[identity(demand.Cell)] {
			if offer.Cluster == "" {
				continue
			}
			if other, taken := first[offer.Cluster]; taken && other != demand.Cell.Key {
				d.refuse(NoAcceptance, demand.Cell.Key, offer.Source, "cells %s and %s ran in one cluster, %s; each cell of an acceptance runs in its own", other, demand.Cell.Key, offer.Cluster)
				continue
			}
			first[offer.Cluster] = demand.Cell.Key
		}
	}
}
