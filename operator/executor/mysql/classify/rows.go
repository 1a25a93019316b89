package classify

import (
	"slices"

	"vitess.io/vitess/go/vt/sqlparser"

	"ptah.run/ptah/operator/executor/mysql/sqltext"
)

// changeRows classifies statements about rows in their plain forms. What is inserted as plain values takes nothing away;
// what is changed or deleted is lost. Any other form may call anything and is not known.
func changeRows(e *effect, statement sqlparser.Statement) {
	e.locks(noLock)
	switch n := statement.(type) {
	case *sqlparser.Insert:
		if n.Action != sqlparser.InsertAct || bool(n.Ignore) || len(n.OnDup) > 0 || n.RowAlias != nil || !plainRows(n.Rows) {
			e.unknown()
		}
	case *sqlparser.Update:
		if n.Where == nil || !oneTable(n.TableExprs) || n.With != nil || bool(n.Ignore) {
			e.unknown()
			return
		}
		e.raise(destructive, "what the row holds now is lost")
	case *sqlparser.Delete:
		if n.Where == nil || !oneTable(n.TableExprs) || n.With != nil || bool(n.Ignore) {
			e.unknown()
			return
		}
		e.raise(destructive, "a row goes")
	}
}

func oneTable(list []sqlparser.TableExpr) bool {
	if len(list) != 1 {
		return false
	}
	_, plain := list[0].(*sqlparser.AliasedTableExpr)
	return plain
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
