package classify

import (
	"strings"

	"vitess.io/vitess/go/vt/sqlparser"

	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/plan/report"
)

// table classifies statements about tables and views.
func (c *Classifier) table(e *effect, statement sqlparser.Statement) {
	switch n := statement.(type) {
	case *sqlparser.CreateTable:
		if n.FullyParsed && n.TableSpec != nil && !n.IfNotExists {
			c.made[strings.ToLower(n.Table.Name.String())] = true
			return
		}
		e.unknown()
	case *sqlparser.DropTable:
		e.locks(exclusive)
		e.raise(destructive, "a table and its rows go")
	case *sqlparser.CreateView:
		if n.IsReplace {
			e.raise(warning, "readers get other columns or rows")
		}
	case *sqlparser.DropView:
		e.raise(warning, "readers fail until it is made again")
	case *sqlparser.AlterTable:
		if !n.FullyParsed {
			e.unknown()
			return
		}
		c.alter(e, n)
	case *sqlparser.Insert, *sqlparser.Update, *sqlparser.Delete:
		changeRows(e, n)
	default:
		e.unknown()
	}
}

func (c *Classifier) alter(e *effect, n *sqlparser.AlterTable) {
	name := strings.ToLower(n.Table.Name.String())
	a := alteration{effect: e, table: c.tables[name]}
	for _, option := range n.AlterOptions {
		if options, ok := option.(sqlparser.TableOptions); ok {
			a.recodes = a.recodes || recodes(options)
		}
	}
	for _, option := range n.AlterOptions {
		a.option(option)
	}
	if n.PartitionSpec != nil {
		a.partition(n.PartitionSpec)
	}
	if n.PartitionOption != nil {
		a.destroy("every row moves to another partition, or fails to")
	}
	if c.made[name] && e.severity != destructive { // an empty table of the plan itself hurts nobody
		*e = effect{kind: e.kind, severity: safe, lock: none, rewrite: report.RewriteNone, privileges: e.privileges}
		for _, option := range n.AlterOptions {
			if added, ok := option.(*sqlparser.AddConstraintDefinition); ok {
				if key, ok := added.ConstraintDefinition.Details.(*sqlparser.ForeignKeyDefinition); ok &&
					!c.made[strings.ToLower(key.ReferenceDefinition.ReferencedTable.Name.String())] {
					e.locks(shared)
				}
			}
		}
	}
}

// alteration is one ALTER TABLE.
type alteration struct {
	*effect
	table *dump.Table // before the plan; nil where it is not known
	// recodes says that the table's character set or collation changes: a column that names none is then converted by a
	// definition that reads the same.
	recodes bool
}

func recodes(options sqlparser.TableOptions) bool {
	for _, o := range options {
		switch strings.ToUpper(o.Name) {
		case "CHARSET", "CHARACTER SET", "COLLATE":
			return true
		}
	}
	return false
}

func (a alteration) destroy(reason string) {
	a.raise(destructive, reason)
	a.locks(exclusive)
	a.rewrites(report.RewriteTable)
}

func (a alteration) option(option sqlparser.AlterOption) {
	switch o := option.(type) {
	case *sqlparser.AddColumns:
		for _, column := range o.Columns {
			a.addColumn(column)
		}
	case *sqlparser.DropColumn:
		a.locks(noLock)
		a.rewrites(report.RewriteMaybe)
		a.raise(destructive, "a column and its values go")
	case *sqlparser.ModifyColumn:
		a.modify(o.NewColDefinition)
	case *sqlparser.AlterColumn, *sqlparser.AlterIndex:
		a.locks(noLock)
	case *sqlparser.AlterCheck:
		a.locks(shared)
		a.rewrites(report.RewriteScan)
		a.raise(warning, "changes which rows are accepted")
	case *sqlparser.RenameIndex:
		a.locks(noLock)
		a.raise(warning, "what uses the old name fails")
	case *sqlparser.AddIndexDefinition:
		a.addIndex(o.IndexDefinition)
	case *sqlparser.DropKey:
		a.dropKey(o)
	case *sqlparser.AddConstraintDefinition:
		a.locks(shared)
		a.rewrites(report.RewriteTable)
		a.raise(warning, "fails where rows do not fit")
	case sqlparser.TableOptions:
		for _, each := range o {
			a.tableOption(each)
		}
	default:
		a.destroy("a change of this kind is not known to be harmless")
	}
}

func (a alteration) addColumn(column *sqlparser.ColumnDefinition) {
	a.locks(noLock)
	o := column.Type.Options
	switch {
	case o == nil:
	case o.Autoincrement || o.As != nil && o.Storage == sqlparser.StoredStorage:
		a.locks(shared)
		a.rewrites(report.RewriteTable)
	case o.As != nil:
		return
	case o.Default != nil && !o.DefaultLiteral && !constant(o.Default):
		a.locks(shared)
		a.rewrites(report.RewriteTable)
	}
	if o != nil && o.Null != nil && !*o.Null && o.Default == nil && o.As == nil && !o.Autoincrement {
		a.raise(warning, "rows that are there get a value that nobody wrote")
	}
	if o != nil && (o.Reference != nil || o.KeyOpt != 0) {
		a.destroy("a change of this kind is not known to be harmless")
	}
	a.rewrites(a.instantly())
}

// constant says whether a default is a literal or the time, which a server writes into no row beforehand.
func constant(e sqlparser.Expr) bool {
	switch e.(type) {
	case *sqlparser.Literal, *sqlparser.NullVal, *sqlparser.CurTimeFuncExpr, sqlparser.BoolVal, *sqlparser.IntroducerExpr:
		return true
	}
	return false
}

// instantly is the risk of adding a column: none where the server only notes it.
func (a alteration) instantly() report.RewriteRisk {
	if a.table == nil || strings.Contains(a.table.Options, "COMPRESSED") {
		return report.RewriteMaybe
	}
	for _, key := range a.table.Keys {
		if key.Kind == dump.SpecialKey {
			return report.RewriteMaybe
		}
	}
	return report.RewriteNone
}

func (a alteration) modify(column *sqlparser.ColumnDefinition) {
	before := a.column(column.Name.String())
	if before == nil || a.recodes {
		a.destroy("values may not fit the new type")
		return
	}
	switch change(before, column) {
	case sameType:
		a.locks(noLock)
		a.rewrites(report.RewriteMaybe)
	case wider:
		a.locks(noLock)
		a.raise(warning, "the column becomes wider")
		a.rewrites(report.RewriteMaybe)
	case widerRewritten:
		a.locks(shared)
		a.raise(warning, "the column becomes wider")
		a.rewrites(report.RewriteTable)
	default:
		a.destroy("values may not fit the new type")
		return
	}
	if nullable(before) && !nullable(column) {
		a.rewrites(report.RewriteTable)
		a.raise(warning, "fails where a value is missing")
	}
	if generated(before) != generated(column) {
		a.locks(shared)
		a.rewrites(report.RewriteTable)
		a.raise(warning, "every value of the column is computed in another way")
	}
	if autoIncrement(before) != autoIncrement(column) {
		a.locks(shared)
		a.rewrites(report.RewriteTable)
		a.raise(warning, "changes which values come next")
	}
}

// column returns a column as it is before the plan, or nil.
func (a alteration) column(name string) *sqlparser.ColumnDefinition {
	if a.table == nil {
		return nil
	}
	created, ok := parse(a.table.Bare()).(*sqlparser.CreateTable)
	if !ok || created.TableSpec == nil {
		return nil
	}
	for _, column := range created.TableSpec.Columns {
		if strings.EqualFold(column.Name.String(), name) {
			return column
		}
	}
	return nil
}

func (a alteration) addIndex(n *sqlparser.IndexDefinition) {
	a.rewrites(report.RewriteTable)
	switch n.Info.Type {
	case sqlparser.IndexTypePrimary, sqlparser.IndexTypeUnique:
		a.locks(noLock)
		a.raise(warning, "fails where rows are not unique")
	case sqlparser.IndexTypeSpatial, sqlparser.IndexTypeFullText:
		a.locks(shared)
	default:
		a.locks(noLock)
	}
}

func (a alteration) dropKey(n *sqlparser.DropKey) {
	a.locks(noLock)
	switch n.Type {
	case sqlparser.ForeignKeyType, sqlparser.CheckKeyType:
		a.raise(warning, "a rule for stored rows goes")
	case sqlparser.NormalKeyType:
		if a.table != nil {
			for _, key := range a.table.Keys {
				if strings.EqualFold(key.Name, n.Name.String()) && key.Kind != dump.UniqueKey {
					a.raise(warning, "queries may become slow")
					return
				}
			}
		}
		a.raise(destructive, "rows may no longer be unique")
	default:
		a.destroy("rows may no longer be unique")
	}
}

// rowOptions say how rows are stored; setting one writes them again.
var rowOptions = map[string]bool{"ROW_FORMAT": true, "KEY_BLOCK_SIZE": true, "COMPRESSION": true, "ENCRYPTION": true, "TABLESPACE": true}

// quietOptions touch no row.
var quietOptions = map[string]bool{"COMMENT": true, "STATS_PERSISTENT": true, "STATS_AUTO_RECALC": true, "STATS_SAMPLE_PAGES": true,
	"AUTOEXTEND_SIZE": true, "MIN_ROWS": true, "MAX_ROWS": true, "AVG_ROW_LENGTH": true, "CHECKSUM": true, "DELAY_KEY_WRITE": true, "PACK_KEYS": true}

func (a alteration) tableOption(o *sqlparser.TableOption) {
	a.locks(noLock)
	switch name := strings.ToUpper(o.Name); {
	case quietOptions[name]:
	case rowOptions[name]:
		a.rewrites(report.RewriteTable)
		a.raise(warning, "every row is written again")
	case name == "CHARSET" || name == "CHARACTER SET" || name == "COLLATE":
		a.raise(warning, "columns that are added later are stored and compared in another way")
	default:
		a.destroy("a change of this kind is not known to be harmless")
	}
}

func (a alteration) partition(n *sqlparser.PartitionSpec) {
	if n.Action == sqlparser.AddAction {
		a.locks(shared)
		a.rewrites(report.RewriteMaybe)
		a.raise(warning, "rows may move to another partition")
		return
	}
	a.destroy("rows go with a partition, or are written again")
}
