package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

// Stage is a database that can hold the desired schema and the managed rows.
type Stage interface {
	// Open makes the desired schema anew, without rows and without some foreign keys, and returns a session in which
	// rows can be loaded without a trigger or a foreign key at work.
	Open(ctx context.Context, without []Foreign) (Session, error)
	// Ready ends the loading: in the session that it returns triggers and foreign keys are at work.
	Ready(ctx context.Context) (Session, error)
	Close()
}

// Order runs the changes on the rows that the database holds and brings them into an order in which the server takes
// them: what is refused because it needs something that comes later is tried again behind it, as long as anything
// succeeds. What is left then may still do in one transaction, where keys are asked at its end.
func (p *Plan) Order(ctx context.Context, stage Stage, transactions bool) (together bool, err error) {
	defer stage.Close()
	s, err := p.stage(ctx, stage)
	if err != nil {
		return false, err
	}
	todo := p.changes
	p.changes = nil
	for len(todo) > 0 {
		var rest []*Change
		var first error
		for _, c := range todo {
			err := p.run(ctx, s, c)
			switch {
			case err == nil:
				p.changes = append(p.changes, c)
			case p.dialect.State(err) == "":
				return false, err
			default:
				rest = append(rest, c)
				if first == nil {
					first = p.refused(c, err)
				}
			}
		}
		if len(rest) == len(todo) {
			if !transactions || p.inOne(ctx, s, rest) != nil {
				return false, first
			}
			p.changes, together = append(p.changes, rest...), true
			break
		}
		todo = rest
	}
	return together, p.reached(ctx, s)
}

// Rehearse runs the changes once more from the start, in their final order, in one transaction or each on its own.
func (p *Plan) Rehearse(ctx context.Context, stage Stage, together bool) error {
	defer stage.Close()
	s, err := p.stage(ctx, stage)
	if err != nil {
		return err
	}
	if together {
		err = p.inOne(ctx, s, p.changes)
	} else {
		for _, c := range p.changes {
			if err = p.run(ctx, s, c); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("rehearse the changes of rows: %w", closed(p.dialect, err))
	}
	return p.reached(ctx, s)
}

// stage makes a database that holds the desired schema and the managed rows as they are now.
func (p *Plan) stage(ctx context.Context, stage Stage) (Session, error) {
	s, err := stage.Open(ctx, p.unknowable())
	if err != nil {
		return nil, err
	}
	for _, set := range p.sets {
		if err := p.load(ctx, s, set); err != nil {
			return nil, err
		}
	}
	return stage.Ready(ctx)
}

// unknowable are the foreign keys of the managed tables that refer to rows which nobody manages. Whether those rows are
// there, only the database itself can say.
func (p *Plan) unknowable() []Foreign {
	whole := map[[2]string]bool{}
	managed := map[[2]string]bool{}
	for _, s := range p.sets {
		name := [2]string{s.wanted.Schema, s.wanted.Table}
		managed[name], whole[name] = true, s.wanted.Scope == ScopeTable
	}
	var out []Foreign
	for _, f := range p.foreign {
		if managed[[2]string{f.Schema, f.Table}] && !whole[[2]string{f.ParentSchema, f.Parent}] {
			out = append(out, f)
		}
	}
	return out
}

// load writes the rows of the database into the desired table.
func (p *Plan) load(ctx context.Context, s Session, set *set) error {
	var names []string
	var columns []Column
	var places []int
	always := false
	for _, c := range set.table.Columns {
		i := slices.IndexFunc(set.live.Columns, func(o Column) bool { return p.dialect.Same(o.Name, c.Name) })
		if i < 0 || c.Generated {
			continue
		}
		if (set.live.Columns[i].Class == BinaryData) != (c.Class == BinaryData) {
			return uncarried(set, "42804")
		}
		names, columns, places = append(names, p.dialect.Quote(c.Name)), append(columns, c), append(places, i)
		always = always || c.Always
	}
	head := "INSERT INTO " + p.dialect.Name(set.wanted.Schema, set.wanted.Table) + " (" + strings.Join(names, ", ") + ") "
	if always && p.dialect.Always() != "" {
		head += p.dialect.Always() + " "
	}
	for some := range slices.Chunk(set.live.Rows, rowsAtOnce) {
		var tuples []string
		for _, row := range some {
			var values []string
			for j, c := range columns {
				values = append(values, p.dialect.Literal(c, row[places[j]]))
			}
			tuples = append(tuples, "("+strings.Join(values, ", ")+")")
		}
		if _, err := s.Exec(ctx, head+"VALUES "+strings.Join(tuples, ", ")); err != nil {
			if state := p.dialect.State(err); state != "" {
				return uncarried(set, state)
			}
			return err
		}
	}
	return nil
}

// run executes a change, which concerns one row.
func (p *Plan) run(ctx context.Context, s Session, c *Change) error {
	n, err := s.Exec(ctx, c.SQL)
	if err == nil && n != 1 {
		return &failure.Error{Code: report.CodeUnsupported, Categories: []string{"data_rows_updated"}, Detail: c.set.wanted.Table,
			Message: fmt.Sprintf("line %d of the file %s: the change of this row does not reach one row; a trigger, a rule or another change of the plan keeps it from doing so", c.line, c.set.declared.File)}
	}
	return err
}

// inOne runs changes in one transaction.
func (p *Plan) inOne(ctx context.Context, s Session, all []*Change) error {
	if _, err := s.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	for _, c := range all {
		if err := p.run(ctx, s, c); err != nil {
			_, _ = s.Exec(ctx, "ROLLBACK") // the first error is the one to report
			return err
		}
	}
	_, err := s.Exec(ctx, "COMMIT")
	return err
}

// hints say what to do, by what the servers answer.
var hints = map[string]string{
	"23502":      "; a column that may not be null has no default and is not declared",
	"HY000/1364": "; a column that may not be null has no default and is not declared",
	"23503":      "; a row that it refers to is missing, or a row that refers to it is left, or rows refer to one another in a circle",
	"23000/1452": "; a row that it refers to is missing, or rows refer to one another in a circle",
	"23000/1451": "; a row that refers to it is left",
	"23505":      "; another row holds a value that is unique",
	"23000/1062": "; another row holds a value that is unique",
	"23514":      "; a check of the table is not met",
	"HY000/3819": "; a check of the table is not met",
	"428C9":      "; a column takes no value but the one that the database gives it",
	"42501":      "; the role may not change these rows",
}

func (p *Plan) refused(c *Change, err error) error {
	state := p.dialect.State(err)
	return &failure.Error{Code: report.CodeInvalidSchema, SQLState: state, Detail: strings.ToLower(c.Operation) + " in " + c.set.wanted.Table,
		Message: fmt.Sprintf("line %d of the file %s: %s refuses the change of this row with SQLSTATE %s%s", c.line, c.set.declared.File, p.product, state, hints[state])}
}

// reached reads the managed rows again and compares them with what is declared.
func (p *Plan) reached(ctx context.Context, s Session) error {
	now, err := Read(ctx, p.dialect, s, Again(p.Managed()))
	if err != nil {
		return fmt.Errorf("read the changed rows: %w", closed(p.dialect, err))
	}
	if Digest(p.dialect, now) == p.Digest() {
		return nil
	}
	return &failure.Error{Code: report.CodeUnsupported, Categories: []string{"data_rows_updated"},
		Message: "the declared rows do not hold what is declared once they are written: a trigger, a rule or a key that carries changes along makes something else of them; declare what comes of it, or leave these columns out"}
}

// Statements are the changes in their order. classify says what each does; what it cannot see is added.
func (p *Plan) Statements(classify func(sql string) report.Statement) []report.Statement {
	out := make([]report.Statement, 0, len(p.changes))
	for _, c := range p.changes {
		s := classify(c.SQL)
		if len(c.Reaches) > 0 {
			s.Severity = report.Worse(s.Severity, report.SeverityDestructive)
			s.Reason += fmt.Sprintf("; rows of %d other table(s) that refer to it go or change with it", len(c.Reaches))
		}
		out = append(out, s)
	}
	return out
}

// IsChange says whether a statement of a plan is about one row.
func IsChange(s report.Statement) bool {
	return s.Kind == Insert || s.Kind == Update || s.Kind == Delete
}
