package observe

import (
	"context"
	"database/sql"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/plan/report"
)

// SchemaLock names the lock under which the schema of a database is changed. Names belong to the whole server.
func SchemaLock(database string) string {
	return "ptah:" + report.Digest([]byte(database))[len("sha256:"):][:40]
}

// quiet refuses to read while another session holds SchemaLock: what it is about to do may come after the reading. The
// program of that session need not live any more: a statement that waits for a table goes on waiting after its client is
// gone, and runs once the table is free.
func quiet(ctx context.Context, s *target.Session, database string) error {
	var holder sql.NullInt64
	var own int64
	if err := s.QueryRowContext(ctx, "SELECT IS_USED_LOCK(?), CONNECTION_ID()", SchemaLock(database)).Scan(&holder, &own); err != nil {
		return target.Statement(ctx, "looking for another schema change of this database", err)
	}
	if holder.Valid && holder.Int64 != own {
		return failure.New(report.CodeLockTimeout, "another session is changing the schema of this database, so that a reading would not be final; it is read once that session ended")
	}
	return nil
}
