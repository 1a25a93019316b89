package command

import (
	"path/filepath"
	"testing"

	"ptah.run/ptah/qualification/gate"
	"ptah.run/ptah/qualification/record"
)

// TestTheGateOpensForTheCommittedCells holds the signed cells of this repository to what the README says of them: every
// declared cell is there once, signed by a committed key, passed, and about the same build as all others. It asks so under
// the revision they were judged by: whether that is today's is what the command in the README answers.
func TestTheGateOpensForTheCommittedCells(t *testing.T) {
	const folder = "../../reports/schemas"
	declared, err := gateFlags{profile: "../../profiles/schemas.yaml", matrices: "../../matrices", format: "text"}.declared()
	if err != nil {
		t.Fatal(err)
	}
	public, err := filepath.Glob(filepath.Join(folder, "*.pub"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := readVerifiers(public)
	if err != nil {
		t.Fatal(err)
	}
	offered, err := gatherCells(t.Context(), keys, []string{folder})
	if err != nil || len(offered) == 0 {
		t.Fatalf("%d cells, %v", len(offered), err)
	}
	// What a later revision demands besides is left out: of each cell it demands what the cell shows.
	declared.Profile = offered[0].Profile
	shown := map[string][]string{}
	for _, offer := range offered {
		shown[offer.Cell.Key] = offer.Shown
	}
	for i, demand := range declared.Cells {
		declared.Cells[i].Shown = shown[demand.Cell.Key]
	}
	for _, refusal := range gate.Decide(declared, offered).Refusals {
		t.Errorf("%s: %s [%s]", refusal.Code, refusal.Message, refusal.Source)
	}

	// The same set with one cell damaged, and with one left out, stays outside.
	cells, err := filepath.Glob(filepath.Join(folder, "*"+record.CellSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for name, paths := range map[string][]string{
		"damaged":  append([]string{damaged(t, cells[0])}, cells[1:]...),
		"left out": cells[1:],
	} {
		offered, err := gatherCells(t.Context(), keys, paths)
		if err != nil {
			t.Fatal(err)
		}
		if gate.Decide(declared, offered).Passed() {
			t.Errorf("the gate opens with a cell %s", name)
		}
	}
}
