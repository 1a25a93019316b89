// Package classify says what a statement of a plan can do: how much it can hurt, which lock it takes, whether it
// rewrites rows, whether it changes authority, and which relations it touches.
//
// It parses with PostgreSQL's own grammar and works by allow-list: a statement that is not known to be harmless is
// destructive, and a statement that does not parse is, too. It only ever raises.
package classify

import (
	"slices"

	nodes "github.com/pganalyze/pg_query_go/v6"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/plan/report"
)

// Lock classes in PostgreSQL's own words, weakest first.
const (
	none                 = "none"
	accessShare          = "ACCESS SHARE"
	rowExclusive         = "ROW EXCLUSIVE"
	shareUpdateExclusive = "SHARE UPDATE EXCLUSIVE"
	share                = "SHARE"
	shareRowExclusive    = "SHARE ROW EXCLUSIVE"
	accessExclusive      = "ACCESS EXCLUSIVE"
)

var lockOrder = []string{none, accessShare, rowExclusive, shareUpdateExclusive, share, shareRowExclusive, accessExclusive}

// Classifier classifies the statements of one plan in order. It knows what the database holds before the plan, which
// lets it tell a widened type from a narrowed one and a dropped check from a dropped key.
type Classifier struct {
	columns     map[string]string // relation.column to type, as SQL
	constraints map[string]bool   // relation.constraint to whether it keeps rows unique
	indexes     map[string]index  // index to what is known of it
	created     map[string]bool   // tables that the plan itself made and that are still empty
}

type index struct {
	table  dump.Name
	unique bool
}

// New returns a classifier for a plan that starts from the given objects.
func New(entries []dump.Entry) *Classifier {
	c := &Classifier{columns: map[string]string{}, constraints: map[string]bool{}, indexes: map[string]index{},
		created: map[string]bool{}}
	for _, e := range entries {
		object, ok := e.Object()
		if !ok {
			continue
		}
		switch e.Type {
		case "TABLE":
			table, _ := e.Table()
			for _, column := range table.Columns {
				c.columns[plain(object.Name)+"\x00"+dump.Unquote(column.Name)] = column.Type
			}
			for _, constraint := range table.Constraints {
				c.constraints[plain(object.Name)+"\x00"+dump.Unquote(constraint.Name)] = false
			}
		case "CONSTRAINT", "FK CONSTRAINT", "CHECK CONSTRAINT":
			c.constraints[plain(object.On)+"\x00"+dump.Unquote(object.Name.Object)] = e.Type == "CONSTRAINT"
			if e.Type == "CONSTRAINT" {
				c.indexes[plain(dump.Name{Schema: object.On.Schema, Object: object.Name.Object})] = index{object.On, true}
			}
		case "INDEX":
			unique := slices.ContainsFunc(dump.Tokens(e.Statements[0])[:2], func(t dump.Token) bool { return t.Is("UNIQUE") })
			c.indexes[plain(object.Name)] = index{object.On, unique}
		}
	}
	return c
}

func plain(n dump.Name) string {
	schema, object := n.Plain()
	return schema + "\x00" + object
}

// effect is what one statement does. Its zero value is harmless.
type effect struct {
	kind       string
	severity   report.Severity
	reason     string
	lock       string
	rewrite    report.RewriteRisk
	privileges []report.PrivilegeChange
}

// raise keeps the worse of two effects.
func (e *effect) raise(severity report.Severity, reason string) {
	if report.Worse(e.severity, severity) != e.severity {
		e.severity, e.reason = severity, reason
	}
}

func (e *effect) locks(class string) {
	if slices.Index(lockOrder, class) > slices.Index(lockOrder, e.lock) {
		e.lock = class
	}
}

var rewriteOrder = []report.RewriteRisk{report.RewriteNone, report.RewriteScan, report.RewriteMaybe, report.RewriteTable}

func (e *effect) rewrites(risk report.RewriteRisk) {
	if slices.Index(rewriteOrder, risk) > slices.Index(rewriteOrder, e.rewrite) {
		e.rewrite = risk
	}
}

func (e *effect) grants(change report.PrivilegeChange) { e.privileges = append(e.privileges, change) }

// Statement classifies one statement.
func (c *Classifier) Statement(sql string) report.Statement {
	e := &effect{kind: "unknown", severity: report.SeveritySafe, lock: none, rewrite: report.RewriteNone}
	tree, err := parse(sql)
	if err != nil || len(tree.GetStmts()) != 1 {
		e.raise(report.SeverityDestructive, "the statement is not understood")
		e.locks(accessExclusive)
		e.rewrites(report.RewriteMaybe)
	} else {
		c.node(e, tree.GetStmts()[0].GetStmt())
		c.onNewTable(e, tree.GetStmts()[0].GetStmt())
	}
	slices.Sort(e.privileges)
	return report.Statement{SQL: sql, Kind: e.kind, Severity: e.severity, Reason: e.reason, LockClass: e.lock,
		RewriteRisk: e.rewrite, PrivilegeChanges: slices.Compact(e.privileges)}
}

// onNewTable takes back what was said about locks, rows and failing on rows where the table was made by the plan itself.
func (c *Classifier) onNewTable(e *effect, node *nodes.Node) {
	var relation *nodes.RangeVar
	switch n := node.GetNode().(type) {
	case *nodes.Node_CreateStmt:
		c.created[n.CreateStmt.GetRelation().GetSchemaname()+"\x00"+n.CreateStmt.GetRelation().GetRelname()] = true
		return
	case *nodes.Node_AlterTableStmt:
		relation = n.AlterTableStmt.GetRelation()
	case *nodes.Node_IndexStmt:
		relation = n.IndexStmt.GetRelation()
	case *nodes.Node_CreateTrigStmt:
		relation = n.CreateTrigStmt.GetRelation()
	case *nodes.Node_VacuumStmt:
		return
	}
	if relation == nil || e.severity == report.SeverityDestructive || !c.created[relation.GetSchemaname()+"\x00"+relation.GetRelname()] {
		return
	}
	for _, name := range references(node) {
		if !c.created[name.Schema+"\x00"+name.Name] {
			return // a foreign key, or a partition, reaches a table that was there before
		}
	}
	e.severity, e.reason, e.lock, e.rewrite = report.SeveritySafe, "", none, report.RewriteNone
}

// references returns every relation that a statement names outside queries.
func references(node *nodes.Node) []Relation {
	var out []Relation
	walk(node.ProtoReflect(), &out)
	return out
}

func (c *Classifier) node(e *effect, node *nodes.Node) {
	switch n := node.GetNode().(type) {
	case *nodes.Node_AlterTableStmt:
		c.alterTable(e, n.AlterTableStmt)
	case *nodes.Node_DropStmt:
		c.drop(e, n.DropStmt)
	case *nodes.Node_IndexStmt:
		createIndex(e, n.IndexStmt)
	case *nodes.Node_SelectStmt:
		query(e, n.SelectStmt)
	default:
		if !changeRows(e, node) && !c.create(e, node) && !privilege(e, node) && !alterOther(e, node) {
			e.raise(report.SeverityDestructive, "a statement of this kind is not known to be harmless")
			e.locks(accessExclusive)
			e.rewrites(report.RewriteMaybe)
		}
	}
}

// query knows one query: the one by which a sequence goes on where another stood. Any other may call anything.
func query(e *effect, n *nodes.SelectStmt) {
	e.kind = "SELECT"
	if targets := n.GetTargetList(); len(targets) == 1 && n.GetIntoClause() == nil && n.GetWithClause() == nil && n.GetWhereClause() == nil {
		call := targets[0].GetResTarget().GetVal().GetFuncCall()
		var name []string
		for _, part := range call.GetFuncname() {
			name = append(name, part.GetString_().GetSval())
		}
		arguments := call.GetArgs()
		if slices.Equal(name, []string{"pg_catalog", "setval"}) && len(arguments) == 3 && arguments[0].GetAConst() != nil &&
			arguments[1].GetColumnRef() != nil && arguments[2].GetColumnRef() != nil {
			e.kind = "SET SEQUENCE VALUE"
			e.raise(report.SeverityWarning, "changes which values come next")
			return
		}
	}
	e.raise(report.SeverityDestructive, "a query may call a function that changes anything")
	e.rewrites(report.RewriteMaybe)
}

func createIndex(e *effect, n *nodes.IndexStmt) {
	e.kind = "CREATE INDEX"
	e.rewrites(report.RewriteTable)
	e.locks(share)
	if n.GetConcurrent() {
		e.kind, e.lock = "CREATE INDEX CONCURRENTLY", shareUpdateExclusive
	}
	if n.GetUnique() {
		e.raise(report.SeverityWarning, "fails where rows are not unique")
	}
}

// create classifies statements that make something. Nothing that exists is changed unless it says OR REPLACE.
func (c *Classifier) create(e *effect, node *nodes.Node) bool {
	switch n := node.GetNode().(type) {
	case *nodes.Node_CreateStmt:
		createTable(e, n.CreateStmt)
	case *nodes.Node_CreateSeqStmt:
		e.kind = "CREATE SEQUENCE"
	case *nodes.Node_CreateEnumStmt, *nodes.Node_CompositeTypeStmt, *nodes.Node_CreateRangeStmt:
		e.kind = "CREATE TYPE"
	case *nodes.Node_CreateDomainStmt:
		e.kind = "CREATE DOMAIN"
	case *nodes.Node_DefineStmt:
		e.kind = "CREATE " + objectWord(n.DefineStmt.GetKind())
	case *nodes.Node_CreateSchemaStmt:
		e.kind = "CREATE SCHEMA"
		if n.CreateSchemaStmt.GetAuthrole() != nil {
			e.grants(report.PrivilegeOwnership)
		}
	case *nodes.Node_CreateExtensionStmt:
		e.kind = "CREATE EXTENSION"
		e.raise(report.SeverityWarning, "runs the extension's own script")
	case *nodes.Node_CreateFunctionStmt:
		createFunction(e, n.CreateFunctionStmt)
	case *nodes.Node_ViewStmt:
		createView(e, n.ViewStmt)
	case *nodes.Node_CreateTableAsStmt:
		if n.CreateTableAsStmt.GetObjtype() != nodes.ObjectType_OBJECT_MATVIEW {
			return false
		}
		e.kind = "CREATE MATERIALIZED VIEW"
		e.rewrites(report.RewriteScan)
		e.locks(accessShare)
	case *nodes.Node_CreateTrigStmt:
		e.kind = "CREATE TRIGGER"
		e.locks(shareRowExclusive)
		e.raise(report.SeverityWarning, "changes what happens to rows that are written")
	case *nodes.Node_RuleStmt:
		e.kind = "CREATE RULE"
		e.locks(accessExclusive)
		e.raise(report.SeverityWarning, "changes what happens to rows that are written")
	case *nodes.Node_CreateStatsStmt:
		e.kind = "CREATE STATISTICS"
		e.locks(shareUpdateExclusive)
	case *nodes.Node_VacuumStmt:
		if n.VacuumStmt.GetIsVacuumcmd() {
			return false
		}
		e.kind = "ANALYZE"
		e.rewrites(report.RewriteScan)
		e.locks(shareUpdateExclusive)
	case *nodes.Node_CommentStmt:
		e.kind = "COMMENT"
		e.locks(shareUpdateExclusive)
	default:
		return false
	}
	return true
}

func createTable(e *effect, n *nodes.CreateStmt) {
	e.kind = "CREATE TABLE"
	if n.GetPartbound() != nil {
		e.locks(accessExclusive)
		e.rewrites(report.RewriteScan)
	}
	if len(n.GetInhRelations()) > 0 {
		e.locks(shareUpdateExclusive)
	}
	for _, element := range n.GetTableElts() {
		if element.GetConstraint().GetContype() == nodes.ConstrType_CONSTR_FOREIGN {
			e.locks(shareRowExclusive)
		}
	}
}

func createFunction(e *effect, n *nodes.CreateFunctionStmt) {
	what := "FUNCTION"
	if n.GetIsProcedure() {
		what = "PROCEDURE"
	}
	e.kind = "CREATE " + what
	if n.GetReplace() {
		e.kind = "CREATE OR REPLACE " + what
		e.raise(report.SeverityWarning, "changes what existing callers run")
		e.grants(report.PrivilegeFunctionReplacement)
	}
	if definer(n.GetOptions()) {
		e.raise(report.SeverityWarning, "runs with the rights of its owner")
		e.grants(report.PrivilegeSecurityDefiner)
	}
}

func definer(options []*nodes.Node) bool {
	return slices.ContainsFunc(options, func(n *nodes.Node) bool {
		option := n.GetDefElem()
		return option.GetDefname() == "security" && truthy(option)
	})
}

func truthy(option *nodes.DefElem) bool {
	argument := option.GetArg()
	switch {
	case argument == nil:
		return true
	case argument.GetBoolean() != nil:
		return argument.GetBoolean().GetBoolval()
	case argument.GetString_() != nil:
		return !slices.Contains([]string{"false", "off", "no", "0"}, argument.GetString_().GetSval())
	}
	return true
}

func createView(e *effect, n *nodes.ViewStmt) {
	e.kind = "CREATE VIEW"
	e.locks(accessShare)
	if n.GetReplace() {
		e.kind = "CREATE OR REPLACE VIEW"
		e.locks(accessExclusive)
		e.raise(report.SeverityWarning, "changes what existing readers see")
	}
	for _, option := range n.GetOptions() {
		if d := option.GetDefElem(); d.GetDefname() == "security_invoker" && !truthy(d) {
			e.grants(report.PrivilegeSecurityDefiner)
		}
	}
}
