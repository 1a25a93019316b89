package classify

import (
	"slices"

	nodes "github.com/pganalyze/pg_query_go/v6"

	"ptah.run/ptah/operator/plan/report"
)

// changeRows classifies statements about rows. What is inserted as plain values takes nothing away; what is changed or
// deleted is lost, and any other form may call anything.
func changeRows(e *effect, node *nodes.Node) {
	e.locks(rowExclusive)
	switch n := node.GetNode().(type) {
	case *nodes.Node_InsertStmt:
		e.kind = "INSERT"
		if !plainInsert(n.InsertStmt) {
			e.raise(report.SeverityDestructive, "inserts what is not a plain value")
			e.rewrites(report.RewriteMaybe)
		}
	case *nodes.Node_UpdateStmt:
		e.kind = "UPDATE"
		e.raise(report.SeverityDestructive, "what the row holds now is lost")
		if u := n.UpdateStmt; u.GetWhereClause() == nil || len(u.GetFromClause()) > 0 || u.GetWithClause() != nil {
			e.rewrites(report.RewriteTable)
		}
	case *nodes.Node_DeleteStmt:
		e.kind = "DELETE"
		e.raise(report.SeverityDestructive, "a row goes")
		if d := n.DeleteStmt; d.GetWhereClause() == nil || len(d.GetUsingClause()) > 0 || d.GetWithClause() != nil {
			e.rewrites(report.RewriteTable)
		}
	}
}

func plainInsert(n *nodes.InsertStmt) bool {
	list := n.GetSelectStmt().GetSelectStmt()
	if n.GetOnConflictClause() != nil || n.GetWithClause() != nil || len(n.GetReturningList()) > 0 || list == nil || len(list.GetValuesLists()) == 0 {
		return false
	}
	for _, row := range list.GetValuesLists() {
		if slices.ContainsFunc(row.GetList().GetItems(), func(item *nodes.Node) bool { return !plainValue(item) }) {
			return false
		}
	}
	return true
}

// plainValue says whether an expression is a value as it stands there, or a negative number.
func plainValue(item *nodes.Node) bool {
	if item.GetAConst() != nil {
		return true
	}
	sign := item.GetAExpr()
	return sign != nil && sign.GetLexpr() == nil && len(sign.GetName()) == 1 && sign.GetName()[0].GetString_().GetSval() == "-" && sign.GetRexpr().GetAConst() != nil
}
