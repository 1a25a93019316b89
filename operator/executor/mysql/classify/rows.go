package classify

import (
	"slices"

	"vitess.io/vitess/go/vt/sqlparser"

	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/plan/report"
)

// changeRows classifies statements about rows. What is inserted as plain values takes nothing away; what is changed or
// deleted is lost, and any other form may call anything.
func changeRows(e *effect, statement sqlparser.Statement) {
	e.locks(noLock)
	switch n := statement.(type) {
	case *sqlparser.Insert:
		if n.Action != sqlparser.InsertAct || bool(n.Ignore) || len(n.OnDup) > 0 || n.RowAlias != nil || !plainRows(n.Rows) {
			e.unknown()
		}
	case *sqlparser.Update:
		e.raise(destructive, "what the row holds now is lost")
		if n.Where == nil || len(n.TableExprs) != 1 || n.With != nil {
			e.rewrites(report.RewriteTable)
		}
	case *sqlparser.Delete:
		e.raise(destructive, "a row goes")
		if n.Where == nil || len(n.TableExprs) != 1 || n.With != nil {
			e.rewrites(report.RewriteTable)
		}
	}
}

func plainRows(list sqlparser.InsertRows) bool {
	values, ok := list.(sqlparser.Values)
	return ok && !slices.ContainsFunc(values, func(row sqlparser.ValTuple) bool {
		return slices.ContainsFunc(row, func(value sqlparser.Expr) bool { return !plainValue(value) })
	})
}

// plainValue says whether an expression is a value as it stands there: with a sign, or with its character set.
func plainValue(value sqlparser.Expr) bool {
	switch n := value.(type) {
	case *sqlparser.Literal, *sqlparser.NullVal:
		return true
	case *sqlparser.UnaryExpr:
		return n.Operator == sqlparser.UMinusOp && plainValue(n.Expr)
	case *sqlparser.IntroducerExpr:
		return plainValue(n.Expr)
	}
	return false
}

// changed returns the table whose rows a statement changes.
func changed(tokens []sqltext.Token) []string {
	for i, t := range tokens {
		switch {
		case t.Is("INTO"), t.Is("FROM"), i == 0 && t.Is("UPDATE"):
			return []string{qualified(tokens, i+1)}
		}
	}
	return nil
}
