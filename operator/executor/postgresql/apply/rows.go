package apply

import (
	"context"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/rowsql"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

// changesRow says whether a statement is one of those about managed rows.
func (r *run) changesRow(s report.Statement) bool {
	return len(r.plan.ManagedRows) > 0 && rows.IsChange(s)
}

// holdRows keeps others from changing the managed rows until the transaction ends, and reads them once more: they were
// read before in another transaction.
func (r *run) holdRows(ctx context.Context) error {
	if !slices.ContainsFunc(r.plan.Statements, r.changesRow) {
		return nil
	}
	const doing = "locking the declared rows"
	var whole []string
	for _, m := range r.plan.ManagedRows {
		if m.Scope == rows.ScopeTable {
			whole = append(whole, dump.Quote(m.Schema)+"."+dump.Quote(m.Table))
		}
	}
	there, err := r.existing(ctx, whole)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		if _, err := r.conn.Exec(ctx, "LOCK TABLE "+strings.Join(there, ", ")+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return target.Statement(ctx, doing, err)
		}
	}
	if err := rowsql.Prepare(ctx, r.conn.PgConn(), true); err != nil {
		return target.Statement(ctx, doing, err)
	}
	now, err := rows.Read(ctx, rowsql.Dialect{}, rowsql.Session{Conn: r.conn.PgConn()}, rows.Again(r.plan.ManagedRows))
	if err != nil {
		return rows.Discreet(target.Statement(ctx, doing, err))
	}
	if rows.Digest(rowsql.Dialect{}, now) != r.plan.RowsFingerprint {
		return stale("somebody changed the declared rows before the first statement; compute a new plan")
	}
	return nil
}

// rowResult judges the answer to a change of one row. What the server says about a row is not passed on.
func (r *run) rowResult(ctx context.Context, doing string, n int64, err error) error {
	if err == nil && n != 1 {
		return stale("a change of a declared row did not reach one row while " + doing + ": somebody else changed it, or a trigger or a policy keeps it as it is; compute a new plan")
	}
	return rows.Discreet(target.Statement(ctx, doing, err))
}
