package classify

import (
	nodes "github.com/pganalyze/pg_query_go/v6"

	"ptah.run/ptah/operator/plan/report"
)

// privilege classifies statements about rights and roles.
func privilege(e *effect, node *nodes.Node) bool {
	switch n := node.GetNode().(type) {
	case *nodes.Node_GrantStmt:
		grant(e, n.GrantStmt)
	case *nodes.Node_AlterDefaultPrivilegesStmt:
		grant(e, n.AlterDefaultPrivilegesStmt.GetAction())
		e.kind = "ALTER DEFAULT PRIVILEGES"
	case *nodes.Node_GrantRoleStmt:
		e.kind = "GRANT ROLE"
		e.raise(report.SeverityWarning, "changes who is a member of a role")
		e.grants(report.PrivilegeRoleMembership)
	case *nodes.Node_CreateRoleStmt, *nodes.Node_AlterRoleStmt, *nodes.Node_AlterRoleSetStmt, *nodes.Node_DropRoleStmt:
		e.kind = "ROLE"
		e.raise(report.SeverityDestructive, "changes a role")
		e.grants(report.PrivilegeRole)
	case *nodes.Node_DropOwnedStmt:
		e.kind = "DROP OWNED"
		e.raise(report.SeverityDestructive, "drops whatever a role owns")
		e.locks(accessExclusive)
		e.grants(report.PrivilegeRevoke)
	case *nodes.Node_ReassignOwnedStmt:
		e.kind = "REASSIGN OWNED"
		e.raise(report.SeverityWarning, "changes the owner of objects")
		e.grants(report.PrivilegeOwnership)
	case *nodes.Node_AlterOwnerStmt:
		e.kind = "ALTER OWNER"
		e.raise(report.SeverityWarning, "changes the owner of an object")
		e.grants(report.PrivilegeOwnership)
	case *nodes.Node_CreatePolicyStmt:
		policy(e, "CREATE POLICY")
	case *nodes.Node_AlterPolicyStmt:
		policy(e, "ALTER POLICY")
	default:
		return false
	}
	return true
}

func policy(e *effect, kind string) {
	e.kind = kind
	e.locks(accessExclusive)
	e.raise(report.SeverityWarning, "changes which rows a role sees")
	e.grants(report.PrivilegeRowSecurityPolicy)
}

func grant(e *effect, n *nodes.GrantStmt) {
	if n.GetIsGrant() {
		e.kind = "GRANT"
		e.raise(report.SeverityWarning, "gives rights")
		e.grants(report.PrivilegeGrant)
		return
	}
	e.kind = "REVOKE"
	e.raise(report.SeverityWarning, "takes rights")
	e.grants(report.PrivilegeRevoke)
}
