package classify

import (
	"slices"

	nodes "github.com/pganalyze/pg_query_go/v6"

	"ptah.run/ptah/operator/plan/report"
)

// changeRows classifies statements about rows in their plain forms. What is inserted as plain values takes nothing away;
// what is changed or deleted is lost. Any other form may call anything and is not known.
func changeRows(e *effect, node *nodes.Node) bool {
	switch n := node.GetNode().(type) {
	case *nodes.Node_InsertStmt:
		if !plainInsert(n.InsertStmt) {
			return false
		}
		e.kind = "INSERT"
	case *nodes.Node_UpdateStmt:
		u := n.UpdateStmt
		if u.GetWhereClause() == nil || len(u.GetFromClause()) > 0 || u.GetWithClause() != nil || len(u.GetReturningList()) > 0 {
			return false
		}
		e.kind = "UPDATE"
		e.raise(report.SeverityDestructive, "what the row holds now is lost")
	case *nodes.Node_DeleteStmt:
		d := n.DeleteStmt
		if d.GetWhereClause() == nil || len(d.GetUsingClause()) > 0 || d.GetWithClause() != nil || len(d.GetReturningList()) > 0 {
			return false
		}
		e.kind = "DELETE"
		e.raise(report.SeverityDestructive, "a row goes")
	default:
		return false
	}
	e.locks(rowExclusive)
	return true
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
