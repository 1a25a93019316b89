package planview

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan/report"
)

func TestAPlanIsShownAfterEverythingHeld(t *testing.T) {
	for _, chunkSize := range []int{1 << 19, 200} {
		w := newWorld(t, exampleDocument(), chunkSize)
		view, err := Fetch(t.Context(), w.reader(t), "shop", "orders", Current)
		if err != nil {
			t.Fatal(err)
		}
		if view.count != 3 || !view.Waiting() || view.Header.Dialect != report.DialectPostgreSQL {
			t.Error("the view is not the stored plan")
		}
		if want := 2 + len(w.chunks); len(w.requests) != want {
			t.Errorf("%d requests %v, want %d", len(w.requests), w.requests, want)
		}
	}
}

func TestWhatDoesNotHoldIsRefusedInOneSentence(t *testing.T) {
	restore := func(t *testing.T, w *world, edit func(*v1alpha1.PtahSchemaPlanSpec)) {
		spec := w.plan.Spec
		edit(&spec)
		var pieces [][]byte
		for _, chunk := range w.chunks {
			pieces = append(pieces, chunk.Spec.Data)
		}
		w.store(t, spec, pieces)
	}
	for name, test := range map[string]struct {
		spoil   func(*testing.T, *world)
		nothing bool
		want    string
	}{
		"no such schema":     {func(_ *testing.T, w *world) { w.schema = nil }, true, `PtahSchema "orders" does not exist in namespace "shop"`},
		"no plan yet":        {func(_ *testing.T, w *world) { w.schema.Status.Plan = nil; w.schema.Status.Phase = "" }, true, `PtahSchema "orders" has no plan (phase none yet)`},
		"an unreadable plan": {func(_ *testing.T, w *world) { w.readFail = errors.New("overloaded") }, false, "overloaded"},
		"a missing plan":     {func(_ *testing.T, w *world) { w.plan = nil }, false, "the plan cannot be shown, approved or applied, because it is not stored as it was"},
		"a missing chunk":    {func(_ *testing.T, w *world) { w.chunks = w.chunks[1:] }, false, "and the next refresh stores it anew"},
		"a missing last one": {func(_ *testing.T, w *world) { w.chunks = w.chunks[:len(w.chunks)-1] }, false, "not found; delete PtahSchemaPlan ptah-plan-"},
		"an altered chunk":   {func(_ *testing.T, w *world) { w.chunks[0].Spec.Data[20] ^= 1 }, false, "the stored plan is not intact"},
		"a chunk cut short":  {func(_ *testing.T, w *world) { w.chunks[0].Spec.Data = w.chunks[0].Spec.Data[1:] }, false, "the stored plan is not intact"},
		"chunks in any order": {func(_ *testing.T, w *world) {
			w.chunks[0].Spec.Data, w.chunks[1].Spec.Data = w.chunks[1].Spec.Data, w.chunks[0].Spec.Data
		}, false, "the stored plan is not intact"},
		"references in any order": {func(_ *testing.T, w *world) {
			w.plan.Spec.Chunks[0], w.plan.Spec.Chunks[1] = w.plan.Spec.Chunks[1], w.plan.Spec.Chunks[0]
		}, false, "the stored plan is not intact"},
		"a foreign chunk":       {func(_ *testing.T, w *world) { w.chunks[0].UID = "foreign" }, false, "was replaced"},
		"another owner's chunk": {func(_ *testing.T, w *world) { w.chunks[0].OwnerReferences[0].UID = "foreign" }, false, "was replaced"},
		"a foreign plan":        {func(_ *testing.T, w *world) { w.plan.UID = "foreign" }, false, "it has UID foreign instead of plan-uid"},
		"another owner's plan":  {func(_ *testing.T, w *world) { w.plan.OwnerReferences[0].UID = "foreign" }, false, "it belongs to another PtahSchema"},
		"a changed fingerprint": {func(_ *testing.T, w *world) { w.plan.Spec.Fingerprint = v1alpha1.Digest(digest("f")) }, false, "its fingerprint does not follow from its content"},
		"another fingerprint":   {func(_ *testing.T, w *world) { w.schema.Status.Plan.Fingerprint = digest("f") }, false, "and the status says " + digest("f")},
		"another content":       {func(_ *testing.T, w *world) { w.schema.Status.Plan.ContentDigest = digest("f") }, false, "its content digest is"},
		"not stored whole":      {func(_ *testing.T, w *world) { w.plan.Status.Conditions[0].Status = metav1.ConditionFalse }, false, "its chunks are not all stored"},
		"a manifest that says less of destruction": {func(t *testing.T, w *world) {
			restore(t, w, func(s *v1alpha1.PtahSchemaPlanSpec) { s.Destructive = false })
		}, false, "its bytes are destructive and its manifest says that they are not"},
		"a manifest that says less of privileges": {func(t *testing.T, w *world) {
			restore(t, w, func(s *v1alpha1.PtahSchemaPlanSpec) { s.PrivilegeChanges = nil })
		}, false, "change privileges that its manifest does not name"},
		"a manifest of another count": {func(t *testing.T, w *world) {
			restore(t, w, func(s *v1alpha1.PtahSchemaPlanSpec) { s.StatementCount = 2 })
		}, false, "hold 3 statements and its manifest says 2"},
		"a manifest of another dialect": {func(t *testing.T, w *world) {
			restore(t, w, func(s *v1alpha1.PtahSchemaPlanSpec) { s.Dialect = report.DialectMySQL })
		}, false, "are for postgresql and its manifest says mysql"},
		"a manifest of another start": {func(t *testing.T, w *world) {
			restore(t, w, func(s *v1alpha1.PtahSchemaPlanSpec) { s.ActualStateFingerprint = v1alpha1.Digest(digest("f")) })
		}, false, "lead from or to another state"},
		"a manifest of another end": {func(t *testing.T, w *world) {
			restore(t, w, func(s *v1alpha1.PtahSchemaPlanSpec) { s.DesiredStateFingerprint = v1alpha1.Digest(digest("f")) })
		}, false, "lead from or to another state"},
		"a manifest about another schema": {func(t *testing.T, w *world) {
			restore(t, w, func(s *v1alpha1.PtahSchemaPlanSpec) { s.SchemaRef.UID = "foreign" })
		}, false, "it belongs to another PtahSchema"},
		"a schema created anew": {func(_ *testing.T, w *world) { w.schema.UID = "newer" }, false, "it belongs to another PtahSchema"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, exampleDocument(), 400)
			test.spoil(t, w)
			view, err := Fetch(t.Context(), w.reader(t), "shop", "orders", Current)
			if err == nil || view != nil {
				t.Fatal("it was shown")
			}
			if errors.Is(err, ErrNothing) != test.nothing || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, nothing %v, want one sentence with %q, nothing %v", err, errors.Is(err, ErrNothing), test.want, test.nothing)
			}
		})
	}
}

func TestWhatTheAPIServerDoesNotAnswerIsNotSaidToBeAltered(t *testing.T) {
	w := newWorld(t, exampleDocument(), 400)
	w.readFail = errors.New("overloaded")
	if _, err := Fetch(t.Context(), w.reader(t), "shop", "orders", Current); err == nil || strings.Contains(err.Error(), "stored as it was") {
		t.Errorf("error %v", err)
	}
}

func TestALostAppliedPlanIsNoReasonToDeleteAnything(t *testing.T) {
	w := newWorld(t, exampleDocument(), 400)
	w.chunks = w.chunks[1:]
	_, err := Fetch(t.Context(), w.reader(t), "shop", "orders", Applied)
	if err == nil || !strings.Contains(err.Error(), "the plan that was applied last cannot be shown") || strings.Contains(err.Error(), "delete") {
		t.Errorf("error %v", err)
	}
}

func TestAManifestMaySayMoreThanItsBytes(t *testing.T) {
	w := newWorld(t, exampleDocument(), 400)
	spec := w.plan.Spec
	spec.PrivilegeChanges = append(spec.PrivilegeChanges, v1alpha1.PrivilegeChange("Revoke"))
	var pieces [][]byte
	for _, chunk := range w.chunks {
		pieces = append(pieces, chunk.Spec.Data)
	}
	w.store(t, spec, pieces)
	if _, err := Fetch(t.Context(), w.reader(t), "shop", "orders", Current); err != nil {
		t.Error(err)
	}
}

func TestTheAppliedPlanIsAnother(t *testing.T) {
	w := newWorld(t, exampleDocument(), 400)
	w.schema.Status.Plan = nil
	view, err := Fetch(t.Context(), w.reader(t), "shop", "orders", Applied)
	if err != nil || view.Waiting() {
		t.Fatalf("%v", err)
	}
	w.schema.Status.Applied.PlanFingerprint = digest("f")
	if _, err := Fetch(t.Context(), w.reader(t), "shop", "orders", Applied); err == nil {
		t.Error("a plan of another fingerprint was shown as the applied one")
	}
	w.schema.Status.Applied = nil
	if _, err := Fetch(t.Context(), w.reader(t), "shop", "orders", Applied); !errors.Is(err, ErrNothing) {
		t.Errorf("error %v, want that nothing was applied", err)
	}
}

func fetch(t *testing.T, w *world, which Which) *View {
	t.Helper()
	view, err := Fetch(t.Context(), w.reader(t), "shop", "orders", which)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := view.Close(); err != nil {
			t.Error(err)
		}
	})
	return view
}

// golden compares with a file; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

func TestAPersonReadsThePlanOn80Columns(t *testing.T) {
	for name, test := range map[string]struct {
		which Which
		edit  func(*world)
	}{
		"waiting.txt": {Current, func(*world) {}},
		"applied.txt": {Applied, func(*world) {}},
		"approved.txt": {Current, func(w *world) {
			w.schema.Status.Plan.Approval = &v1alpha1.PlanApprovalStatus{Name: "go", Approver: v1alpha1.ApprovalIdentity{Username: "alice"}, ApprovedAt: metav1.NewTime(start)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, exampleDocument(), 400)
			test.edit(w)
			var page bytes.Buffer
			if err := fetch(t, w, test.which).Text(&page); err != nil {
				t.Fatal(err)
			}
			golden(t, name, page.String())
			for line := range strings.Lines(page.String()) {
				if columns := utf8.RuneCountInString(strings.TrimRight(line, "\n")); columns > 80 {
					t.Errorf("%d columns: %q", columns, line)
				}
			}
		})
	}
}

func TestAPlanOfMySQLSaysWhatItsLocksAndItsMissingTransactionMean(t *testing.T) {
	var page bytes.Buffer
	if err := fetch(t, newWorld(t, mysqlDocument(), 400), Current).Text(&page); err != nil {
		t.Fatal(err)
	}
	golden(t, "mysql.txt", page.String())
	for line := range strings.Lines(page.String()) {
		if columns := utf8.RuneCountInString(strings.TrimRight(line, "\n")); columns > 80 {
			t.Errorf("%d columns: %q", columns, line)
		}
	}
}

// Whoever approves a deletion must not read that it changes the catalog only.
func TestAChangeOfRowsIsCalledOne(t *testing.T) {
	for kind, want := range map[string]string{
		"INSERT":      "  rows     those that it names (the table is not rewritten)\n",
		"UPDATE":      "  rows     those that it names (the table is not rewritten)\n",
		"DELETE":      "  rows     those that it names (the table is not rewritten)\n",
		"CREATE VIEW": "  rows     none (changes the catalog only)\n",
	} {
		document := exampleDocument()
		document.Statements = []report.Statement{{SQL: kind, Kind: kind, Severity: report.SeveritySafe, LockClass: "none", RewriteRisk: report.RewriteNone}}
		document.Summarise()
		var page strings.Builder
		if err := fetch(t, newWorld(t, document, 400), Current).Text(&page); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), want) {
			t.Errorf("%s: no line %q in\n%s", kind, want, page.String())
		}
	}
}

func TestAStatementCannotHideFromAPerson(t *testing.T) {
	document := exampleDocument()
	// Escape sequences erase lines; direction marks reorder them.
	document.Statements[0].SQL = "DROP TABLE a -- \x1b[2K\x1b[1Aharmless \u202e\u2066 \u200b"
	w := newWorld(t, document, 400)
	var page bytes.Buffer
	if err := fetch(t, w, Current).Text(&page); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(page.String(), "\x1b\u202e\u2066\u200b") {
		t.Error("a control or direction character reaches the terminal")
	}
	for _, want := range []string{`\u{1b}[2K`, `\u{202e}`, `\u{2066}`, `\u{200b}`, "Characters that a terminal would hide or obey"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	page.Reset()
	if err := fetch(t, w, Current).SQL(&page); err != nil || !strings.Contains(page.String(), "\x1b[2K") {
		t.Errorf("-o sql is not exact: %v", err)
	}
}

func TestStatementsAreTerminatedOnce(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT 1":                       "SELECT 1;\n",
		"SELECT 1;":                      "SELECT 1;\n",
		"SELECT 1 -- one":                "SELECT 1 -- one\n;\n",
		"SELECT 1 -- one;":               "SELECT 1 -- one;\n;\n",
		"SELECT ';'":                     "SELECT ';';\n",
		"CREATE FUNCTION f() $$ a; b $$": "CREATE FUNCTION f() $$ a; b $$;\n",
	} {
		document := exampleDocument()
		document.Statements = document.Statements[:1]
		document.Statements[0].SQL = sql
		document.Summarise()
		var page bytes.Buffer
		if err := fetch(t, newWorld(t, document, 1<<19), Current).SQL(&page); err != nil || page.String() != want {
			t.Errorf("%q is printed as %q (%v), want %q", sql, page.String(), err, want)
		}
	}
}

func TestABodyWithSemicolonsGoesToTheMySQLClientInOnePiece(t *testing.T) {
	for sql, want := range map[string]string{
		"DROP TABLE `t`":                         "DROP TABLE `t`;\n",
		"DROP TABLE `t`;":                        "DROP TABLE `t`;\n",
		"CREATE TRIGGER a BEGIN SET b = 1; END":  "DELIMITER //\nCREATE TRIGGER a BEGIN SET b = 1; END\n//\nDELIMITER ;\n",
		"CREATE TRIGGER a BEGIN SET b='//'; END": "DELIMITER ///\nCREATE TRIGGER a BEGIN SET b='//'; END\n///\nDELIMITER ;\n",
	} {
		document := mysqlDocument()
		document.Statements = document.Statements[:1]
		document.Statements[0].SQL = sql
		document.Summarise()
		var page bytes.Buffer
		if err := fetch(t, newWorld(t, document, 1<<19), Current).SQL(&page); err != nil || page.String() != want {
			t.Errorf("%q is printed as %q (%v), want %q", sql, page.String(), err, want)
		}
	}
}

func TestJSONIsTheStoredDocumentByteForByte(t *testing.T) {
	w := newWorld(t, exampleDocument(), 100)
	var page bytes.Buffer
	if err := fetch(t, w, Current).JSON(&page); err != nil || page.String() != string(w.data) {
		t.Errorf("printed %q (%v)", page.String(), err)
	}
}

func TestTheApprovalAuthorisesExactlyThisPlan(t *testing.T) {
	w := newWorld(t, exampleDocument(), 400)
	var page bytes.Buffer
	if err := fetch(t, w, Current).Approval(&page); err != nil {
		t.Fatal(err)
	}
	var made v1alpha1.PtahSchemaApproval
	if err := yaml.UnmarshalStrict(page.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.PtahSchemaApprovalSpec{
		SchemaRef:       v1alpha1.ImmutableObjectReference{Name: "orders", UID: "schema-uid"},
		PlanRef:         v1alpha1.ImmutableObjectReference{Name: w.plan.Name, UID: "plan-uid"},
		PlanFingerprint: w.plan.Spec.Fingerprint,
	}
	if made.Spec.SchemaRef != want.SchemaRef || made.Spec.PlanRef != want.PlanRef || made.Spec.PlanFingerprint != want.PlanFingerprint {
		t.Errorf("approval %+v", made.Spec)
	}
	if made.GenerateName != "orders-" || made.Namespace != "shop" || made.Kind != "PtahSchemaApproval" {
		t.Errorf("metadata %+v", made.ObjectMeta)
	}
	if strings.Contains(page.String(), "approver") || strings.Contains(page.String(), "null") {
		t.Errorf("it names what admission stamps:\n%s", page.String())
	}
}
