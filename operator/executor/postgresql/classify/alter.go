package classify

import (
	"fmt"
	"strings"

	nodes "github.com/pganalyze/pg_query_go/v6"

	"ptah.run/ptah/operator/plan/report"
)

// alterOther classifies the ALTER statements that are not ALTER TABLE.
func alterOther(e *effect, node *nodes.Node) bool {
	switch n := node.GetNode().(type) {
	case *nodes.Node_AlterEnumStmt:
		e.kind = "ALTER TYPE"
		e.raise(report.SeverityWarning, "a label cannot be taken back")
	case *nodes.Node_AlterSeqStmt:
		e.kind = "ALTER SEQUENCE"
		e.locks(shareRowExclusive)
		e.raise(report.SeverityWarning, "changes which values come next")
	case *nodes.Node_AlterDomainStmt:
		alterDomain(e, n.AlterDomainStmt)
	case *nodes.Node_AlterStatsStmt:
		e.kind = "ALTER STATISTICS"
		e.locks(shareUpdateExclusive)
	case *nodes.Node_AlterPublicationStmt:
		e.kind = "ALTER PUBLICATION"
		e.locks(shareUpdateExclusive)
		e.raise(report.SeverityWarning, "changes what subscribers receive")
	case *nodes.Node_RenameStmt:
		e.kind = "RENAME"
		e.locks(accessExclusive)
		e.raise(report.SeverityWarning, "what uses the old name fails")
	case *nodes.Node_AlterObjectSchemaStmt:
		e.kind = "SET SCHEMA"
		e.locks(accessExclusive)
		e.raise(report.SeverityWarning, "what uses the old name fails")
	case *nodes.Node_AlterExtensionStmt:
		e.kind = "ALTER EXTENSION"
		e.locks(accessExclusive)
		e.raise(report.SeverityWarning, "runs the extension's own script")
	default:
		return false
	}
	return true
}

func alterDomain(e *effect, n *nodes.AlterDomainStmt) {
	e.kind = "ALTER DOMAIN"
	switch n.GetSubtype() {
	case "C", "O", "V": // add a constraint, set not null, validate
		e.rewrites(report.RewriteScan)
		e.locks(share)
		e.raise(report.SeverityWarning, "fails where rows do not fit")
	case "X": // drop a constraint
		e.raise(report.SeverityWarning, "a rule for stored values goes")
	}
}

// quiet are the parts of ALTER TABLE that touch only the catalog, with the lock that each takes.
var quiet = map[nodes.AlterTableType]string{
	nodes.AlterTableType_AT_ColumnDefault:   accessExclusive,
	nodes.AlterTableType_AT_DropNotNull:     accessExclusive,
	nodes.AlterTableType_AT_SetStatistics:   shareUpdateExclusive,
	nodes.AlterTableType_AT_SetOptions:      shareUpdateExclusive,
	nodes.AlterTableType_AT_ResetOptions:    shareUpdateExclusive,
	nodes.AlterTableType_AT_SetStorage:      accessExclusive,
	nodes.AlterTableType_AT_SetCompression:  accessExclusive,
	nodes.AlterTableType_AT_ClusterOn:       shareUpdateExclusive,
	nodes.AlterTableType_AT_DropCluster:     shareUpdateExclusive,
	nodes.AlterTableType_AT_ReplicaIdentity: accessExclusive,
	nodes.AlterTableType_AT_AlterConstraint: accessExclusive,
}

// effects are the parts of ALTER TABLE that need a person's attention, whatever they are applied to.
var effects = map[nodes.AlterTableType]effect{
	nodes.AlterTableType_AT_DropColumn:         {severity: report.SeverityDestructive, reason: "a column and its values go", lock: accessExclusive},
	nodes.AlterTableType_AT_SetNotNull:         {severity: report.SeverityWarning, reason: "fails where a value is missing", lock: accessExclusive, rewrite: report.RewriteScan},
	nodes.AlterTableType_AT_SetExpression:      {severity: report.SeverityWarning, reason: "every value of the column is computed again", lock: accessExclusive, rewrite: report.RewriteTable},
	nodes.AlterTableType_AT_DropExpression:     {severity: report.SeverityWarning, reason: "the column is no longer computed", lock: accessExclusive},
	nodes.AlterTableType_AT_ValidateConstraint: {severity: report.SeverityWarning, reason: "fails where rows do not fit", lock: shareUpdateExclusive, rewrite: report.RewriteScan},
	nodes.AlterTableType_AT_AddIdentity:        {severity: report.SeverityWarning, reason: "changes which values come next", lock: accessExclusive},
	nodes.AlterTableType_AT_SetIdentity:        {severity: report.SeverityWarning, reason: "changes which values come next", lock: accessExclusive},
	nodes.AlterTableType_AT_DropIdentity:       {severity: report.SeverityWarning, reason: "values no longer come by themselves", lock: accessExclusive},
	nodes.AlterTableType_AT_SetLogged:          {lock: accessExclusive, rewrite: report.RewriteTable},
	nodes.AlterTableType_AT_SetUnLogged:        {severity: report.SeverityWarning, reason: "rows are lost at a crash of the server", lock: accessExclusive, rewrite: report.RewriteTable},
	nodes.AlterTableType_AT_SetAccessMethod:    {severity: report.SeverityWarning, reason: "every row is written again", lock: accessExclusive, rewrite: report.RewriteTable},
	nodes.AlterTableType_AT_AttachPartition:    {severity: report.SeverityWarning, reason: "fails where rows do not fit", lock: accessExclusive, rewrite: report.RewriteScan},
	nodes.AlterTableType_AT_DetachPartition:    {severity: report.SeverityDestructive, reason: "rows leave the table", lock: accessExclusive},
	nodes.AlterTableType_AT_AddInherit:         {severity: report.SeverityWarning, reason: "rows appear in another table", lock: accessExclusive},
	nodes.AlterTableType_AT_DropInherit:        {severity: report.SeverityDestructive, reason: "rows leave another table", lock: accessExclusive},
	nodes.AlterTableType_AT_EnableRowSecurity:  {severity: report.SeverityWarning, reason: "changes which rows a role sees", lock: accessExclusive, privileges: rowSecurity},
	nodes.AlterTableType_AT_ForceRowSecurity:   {severity: report.SeverityWarning, reason: "changes which rows a role sees", lock: accessExclusive, privileges: rowSecurity},
	nodes.AlterTableType_AT_DisableRowSecurity: {severity: report.SeverityDestructive, reason: "rows are no longer hidden from anybody", lock: accessExclusive, privileges: rowSecurity},
	nodes.AlterTableType_AT_NoForceRowSecurity: {severity: report.SeverityDestructive, reason: "rows are no longer hidden from the owner", lock: accessExclusive, privileges: rowSecurity},
	nodes.AlterTableType_AT_ChangeOwner:        {severity: report.SeverityWarning, reason: "changes the owner of an object", lock: accessExclusive, privileges: []report.PrivilegeChange{report.PrivilegeOwnership}},
	nodes.AlterTableType_AT_EnableTrig:         triggerState, nodes.AlterTableType_AT_EnableAlwaysTrig: triggerState,
	nodes.AlterTableType_AT_EnableReplicaTrig: triggerState, nodes.AlterTableType_AT_DisableTrig: triggerState,
	nodes.AlterTableType_AT_EnableRule: ruleState, nodes.AlterTableType_AT_EnableAlwaysRule: ruleState,
	nodes.AlterTableType_AT_EnableReplicaRule: ruleState, nodes.AlterTableType_AT_DisableRule: ruleState,
	nodes.AlterTableType_AT_SetRelOptions: {}, nodes.AlterTableType_AT_ResetRelOptions: {}, // read in full below
	nodes.AlterTableType_AT_AddColumn: {}, nodes.AlterTableType_AT_AlterColumnType: {}, // read in full below
	nodes.AlterTableType_AT_AddConstraint: {}, nodes.AlterTableType_AT_DropConstraint: {},
}

var (
	rowSecurity  = []report.PrivilegeChange{report.PrivilegeRowSecurityPolicy}
	triggerState = effect{severity: report.SeverityWarning, reason: "changes what happens to rows that are written", lock: shareRowExclusive}
	ruleState    = effect{severity: report.SeverityWarning, reason: "changes what happens to rows that are written", lock: accessExclusive}
)

func (c *Classifier) alterTable(e *effect, n *nodes.AlterTableStmt) {
	e.kind = "ALTER " + objectWord(n.GetObjtype())
	relation := n.GetRelation().GetSchemaname() + "\x00" + n.GetRelation().GetRelname()
	for _, node := range n.GetCmds() {
		cmd := node.GetAlterTableCmd()
		if n.GetObjtype() == nodes.ObjectType_OBJECT_TYPE {
			attribute(e, cmd)
			continue
		}
		if lock, ok := quiet[cmd.GetSubtype()]; ok {
			e.locks(lock)
			continue
		}
		known, ok := effects[cmd.GetSubtype()]
		if !ok {
			e.raise(report.SeverityDestructive, "a change of this kind is not known to be harmless")
			e.locks(accessExclusive)
			e.rewrites(report.RewriteMaybe)
			continue
		}
		e.raise(known.severity, known.reason)
		e.locks(known.lock)
		e.rewrites(known.rewrite)
		e.privileges = append(e.privileges, known.privileges...)
		switch cmd.GetSubtype() {
		case nodes.AlterTableType_AT_SetRelOptions, nodes.AlterTableType_AT_ResetRelOptions:
			parameters(e, cmd.GetDef().GetList())
		case nodes.AlterTableType_AT_AddColumn:
			addColumn(e, cmd.GetDef().GetColumnDef())
		case nodes.AlterTableType_AT_AlterColumnType:
			c.columnType(e, relation, cmd)
		case nodes.AlterTableType_AT_AddConstraint:
			c.addConstraint(e, relation, cmd.GetDef().GetConstraint())
		case nodes.AlterTableType_AT_DropConstraint:
			c.dropConstraint(e, relation, cmd.GetName())
		}
	}
}

// light are the storage parameters that PostgreSQL changes while a table is written to, beside those of autovacuum and
// of the table's TOAST part.
var light = map[string]bool{"fillfactor": true, "toast_tuple_target": true, "parallel_workers": true, "vacuum_truncate": true,
	"vacuum_index_cleanup": true, "log_autovacuum_min_duration": true, "deduplicate_items": true}

// parameters reads a list of storage parameters for the lock that they take.
func parameters(e *effect, list *nodes.List) {
	e.locks(shareUpdateExclusive)
	for _, item := range list.GetItems() {
		d := item.GetDefElem()
		if !light[d.GetDefname()] && !strings.HasPrefix(d.GetDefname(), "autovacuum_") && d.GetDefnamespace() != "toast" {
			e.locks(accessExclusive)
		}
		switch d.GetDefname() {
		case "security_barrier", "security_invoker", "check_option":
			e.raise(report.SeverityWarning, "changes what existing readers see or write")
			e.grants(report.PrivilegeSecurityDefiner)
		}
	}
}

// attribute is a change of a composite type, whose values may be stored anywhere.
func attribute(e *effect, cmd *nodes.AlterTableCmd) {
	e.locks(accessExclusive)
	if cmd.GetSubtype() == nodes.AlterTableType_AT_AddColumn {
		e.raise(report.SeverityWarning, "stored values get another attribute")
		return
	}
	e.raise(report.SeverityDestructive, "an attribute of stored values goes or changes")
}

func addColumn(e *effect, column *nodes.ColumnDef) {
	e.locks(accessExclusive)
	required, filled := column.GetIsNotNull(), false
	for _, node := range column.GetConstraints() {
		switch constraint := node.GetConstraint(); constraint.GetContype() {
		case nodes.ConstrType_CONSTR_NOTNULL:
			required = true
		case nodes.ConstrType_CONSTR_DEFAULT:
			filled = true
			if !constant(constraint.GetRawExpr()) {
				e.rewrites(report.RewriteMaybe)
			}
		case nodes.ConstrType_CONSTR_GENERATED, nodes.ConstrType_CONSTR_IDENTITY:
			filled = true
			e.rewrites(report.RewriteTable)
		case nodes.ConstrType_CONSTR_PRIMARY, nodes.ConstrType_CONSTR_UNIQUE:
			e.rewrites(report.RewriteTable)
		case nodes.ConstrType_CONSTR_CHECK, nodes.ConstrType_CONSTR_FOREIGN:
			e.rewrites(report.RewriteScan)
		}
	}
	if required && !filled {
		e.raise(report.SeverityWarning, "fails where the table has rows")
	}
}

// constant says whether a default is a constant, with casts or without: the server then stores it once.
func constant(node *nodes.Node) bool {
	if cast := node.GetTypeCast(); cast != nil {
		return constant(cast.GetArg())
	}
	return node.GetAConst() != nil
}

func (c *Classifier) columnType(e *effect, relation string, cmd *nodes.AlterTableCmd) {
	e.locks(accessExclusive)
	from := c.columns[relation+"\x00"+cmd.GetName()]
	to := typeText(cmd.GetDef().GetColumnDef().GetTypeName())
	safe, rewrite := widens(from, to)
	if !safe || !castOf(cmd.GetDef().GetColumnDef().GetRawDefault(), cmd.GetName()) {
		e.raise(report.SeverityDestructive, "values may not fit the new type")
		e.rewrites(report.RewriteMaybe)
		return
	}
	e.raise(report.SeverityWarning, "the column becomes wider")
	if rewrite {
		e.rewrites(report.RewriteTable)
	}
}

// castOf says whether the expression that gives a column its new values is none or a cast of the column itself.
func castOf(using *nodes.Node, column string) bool {
	if using == nil {
		return true
	}
	fields := using.GetTypeCast().GetArg().GetColumnRef().GetFields()
	return len(fields) == 1 && fields[0].GetString_().GetSval() == column
}

func (c *Classifier) addConstraint(e *effect, relation string, n *nodes.Constraint) {
	key := relation + "\x00" + n.GetConname()
	c.constraints[key] = false
	switch n.GetContype() {
	case nodes.ConstrType_CONSTR_FOREIGN:
		e.locks(shareRowExclusive)
	case nodes.ConstrType_CONSTR_CHECK:
		e.locks(accessExclusive)
	case nodes.ConstrType_CONSTR_PRIMARY, nodes.ConstrType_CONSTR_UNIQUE, nodes.ConstrType_CONSTR_EXCLUSION:
		c.constraints[key] = true
		e.locks(accessExclusive)
		if n.GetIndexname() == "" {
			e.rewrites(report.RewriteTable)
		}
		e.raise(report.SeverityWarning, "fails where rows do not fit")
		return
	default:
		e.locks(accessExclusive)
		e.rewrites(report.RewriteMaybe)
		e.raise(report.SeverityDestructive, "a constraint of this kind is not known to be harmless")
		return
	}
	if !n.GetSkipValidation() {
		e.rewrites(report.RewriteScan)
		e.raise(report.SeverityWarning, "fails where rows do not fit")
	}
}

func (c *Classifier) dropConstraint(e *effect, relation, name string) {
	e.locks(accessExclusive)
	unique, known := c.constraints[relation+"\x00"+name]
	if unique || !known {
		e.raise(report.SeverityDestructive, "rows may no longer be unique")
		return
	}
	e.raise(report.SeverityWarning, "a rule for stored rows goes")
}

// typeText writes a type as pg_dump does, as far as the list of widenings needs it.
func typeText(n *nodes.TypeName) string {
	var names []string
	for _, name := range n.GetNames() {
		if text := name.GetString_().GetSval(); text != "pg_catalog" {
			names = append(names, text)
		}
	}
	text := strings.Join(names, ".")
	var modifiers []string
	for _, m := range n.GetTypmods() {
		modifiers = append(modifiers, fmt.Sprint(m.GetAConst().GetIval().GetIval()))
	}
	if len(modifiers) > 0 {
		text += "(" + strings.Join(modifiers, ",") + ")"
	}
	return text + strings.Repeat("[]", len(n.GetArrayBounds()))
}
