package classify

import (
	"strings"

	nodes "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"ptah.run/ptah/operator/plan/report"
)

// objectWord writes a kind of object as SQL does.
func objectWord(kind nodes.ObjectType) string {
	switch kind {
	case nodes.ObjectType_OBJECT_MATVIEW:
		return "MATERIALIZED VIEW"
	case nodes.ObjectType_OBJECT_STATISTIC_EXT:
		return "STATISTICS"
	}
	return strings.ReplaceAll(strings.TrimPrefix(kind.String(), "OBJECT_"), "_", " ")
}

func (c *Classifier) drop(e *effect, n *nodes.DropStmt) {
	e.kind = "DROP " + objectWord(n.GetRemoveType())
	e.locks(accessExclusive)
	if n.GetBehavior() == nodes.DropBehavior_DROP_CASCADE {
		e.raise(report.SeverityDestructive, "whatever depends on it goes, too")
	}
	switch n.GetRemoveType() {
	case nodes.ObjectType_OBJECT_INDEX:
		if n.GetConcurrent() {
			e.kind, e.lock = "DROP INDEX CONCURRENTLY", shareUpdateExclusive
		}
		for _, name := range objectNames(n) {
			i, known := c.indexes[name.Schema+"\x00"+name.Name]
			switch {
			case known && !i.unique, n.GetMissingOk():
				e.raise(report.SeverityWarning, "queries may become slow")
			default:
				e.raise(report.SeverityDestructive, "rows may no longer be unique")
			}
		}
	case nodes.ObjectType_OBJECT_VIEW:
		e.raise(report.SeverityWarning, "readers fail until it is made again")
	case nodes.ObjectType_OBJECT_TRIGGER, nodes.ObjectType_OBJECT_RULE:
		e.raise(report.SeverityWarning, "changes what happens to rows that are written")
	case nodes.ObjectType_OBJECT_STATISTIC_EXT:
		e.raise(report.SeverityWarning, "queries may become slow")
	case nodes.ObjectType_OBJECT_POLICY:
		e.raise(report.SeverityDestructive, "changes which rows a role sees")
		e.grants(report.PrivilegeRowSecurityPolicy)
	default:
		e.raise(report.SeverityDestructive, "an object goes")
	}
}

// Relation is a relation's plain name.
type Relation struct{ Schema, Name string }

// Relations returns the relations that a statement changes or locks against change. What a view only reads is not
// among them. A statement that does not parse yields none; it is destructive anyhow.
func (c *Classifier) Relations(sql string) []Relation {
	tree, err := parse(sql)
	if err != nil {
		return nil
	}
	var out []Relation
	for _, raw := range tree.GetStmts() {
		walk(raw.GetStmt().ProtoReflect(), &out)
		if n := raw.GetStmt().GetDropStmt(); n != nil {
			out = append(out, c.dropped(n)...)
		}
		if n := raw.GetStmt().GetCommentStmt(); n != nil {
			out = append(out, commented(n)...)
		}
	}
	return out
}

// walk collects the relations named in a tree, queries left out.
func walk(message protoreflect.Message, out *[]Relation) {
	switch n := message.Interface().(type) {
	case *nodes.SelectStmt:
		return
	case *nodes.RangeVar:
		*out = append(*out, Relation{n.GetSchemaname(), n.GetRelname()})
		return
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				walk(value.List().Get(i).Message(), out)
			}
		default:
			walk(value.Message(), out)
		}
		return true
	})
}

func (c *Classifier) dropped(n *nodes.DropStmt) []Relation {
	names := objectNames(n)
	if n.GetRemoveType() != nodes.ObjectType_OBJECT_INDEX {
		return names
	}
	for _, name := range names {
		if i, ok := c.indexes[name.Schema+"\x00"+name.Name]; ok {
			schema, table := i.table.Plain()
			names = append(names, Relation{schema, table})
		}
	}
	return names
}

// objectNames returns the names a DROP lists; for what belongs to a table, the table's name.
func objectNames(n *nodes.DropStmt) []Relation {
	var out []Relation
	for _, object := range n.GetObjects() {
		parts := stringList(object.GetList())
		switch n.GetRemoveType() {
		case nodes.ObjectType_OBJECT_TRIGGER, nodes.ObjectType_OBJECT_RULE, nodes.ObjectType_OBJECT_POLICY:
			if len(parts) > 0 {
				parts = parts[:len(parts)-1]
			}
		}
		if relation, ok := relationOf(parts); ok {
			out = append(out, relation)
		}
	}
	return out
}

func commented(n *nodes.CommentStmt) []Relation {
	parts := stringList(n.GetObject().GetList())
	switch n.GetObjtype() {
	case nodes.ObjectType_OBJECT_COLUMN, nodes.ObjectType_OBJECT_TABCONSTRAINT, nodes.ObjectType_OBJECT_TRIGGER,
		nodes.ObjectType_OBJECT_RULE, nodes.ObjectType_OBJECT_POLICY:
		if len(parts) > 0 {
			parts = parts[:len(parts)-1]
		}
	}
	if relation, ok := relationOf(parts); ok {
		return []Relation{relation}
	}
	return nil
}

func stringList(list *nodes.List) []string {
	var out []string
	for _, item := range list.GetItems() {
		out = append(out, item.GetString_().GetSval())
	}
	return out
}

func relationOf(parts []string) (Relation, bool) {
	switch len(parts) {
	case 0:
		return Relation{}, false
	case 1:
		return Relation{Name: parts[0]}, true
	}
	return Relation{parts[len(parts)-2], parts[len(parts)-1]}, true
}
