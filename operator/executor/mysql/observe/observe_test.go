package observe

import (
	"errors"
	"testing"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/pattern"
	"ptah.run/ptah/operator/plan/report"
)

func TestAServerWithABinaryLogTakesNoFunctionAndNoTriggerFromAnOrdinaryAccount(t *testing.T) {
	for kind, want := range map[string]bool{"CREATE FUNCTION": true, "CREATE TRIGGER": true, "CREATE PROCEDURE": false, "DROP TRIGGER": false, "ALTER TABLE": false} {
		plan := []report.Statement{{Kind: "ALTER TABLE"}, {Kind: kind}}
		err := (&State{Barred: true}).CheckAllowed(plan)
		var e *failure.Error
		if want != (errors.As(err, &e) && e.Code == report.CodePermission) || !want && err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if err := (&State{}).CheckAllowed(plan); err != nil {
			t.Errorf("%s where nothing bars it: %v", kind, err)
		}
	}
}

func TestPatternsFollowTheLetterCaseOfTheServer(t *testing.T) {
	for lowerCase, want := range map[int]bool{0: false, 1: true} {
		patterns, err := Server{LowerCase: lowerCase}.Patterns([]string{"Shop.Orders"})
		if err != nil {
			t.Fatal(err)
		}
		if got := pattern.Match(patterns, "shop", "orders"); got != want {
			t.Errorf("lower_case_table_names=%d: %t", lowerCase, got)
		}
		if !pattern.Match(patterns, "Shop", "Orders") {
			t.Error("the very name does not match")
		}
	}
	var e *failure.Error
	if _, err := (Server{}).Patterns([]string{"a.b.c"}); !errors.As(err, &e) || e.Code != report.CodeInvalidInput {
		t.Errorf("a pattern of three parts: %v", err)
	}
}
