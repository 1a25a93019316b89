package planner

import (
	"context"

	"ptah.run/ptah/operator/plan/report"
)

// runAll runs the statements of a plan, together in one transaction of the owner or each on its own. A statement about
// an extension runs as the administrator and ends the owner's transaction before it: the owner must never be given the
// administrator's rights, not even for a rehearsal.
func (s *session) runAll(ctx context.Context, statements []report.Statement, together bool) error {
	open := false
	commit := func() error {
		if !open {
			return nil
		}
		open = false
		return exec(ctx, s.owner, "COMMIT")
	}
	for _, statement := range statements {
		if _, special := extensionStatement(statement.SQL); special {
			if err := commit(); err != nil {
				return err
			}
		} else if together && !open {
			if err := exec(ctx, s.owner, "BEGIN"); err != nil {
				return err
			}
			open = true
		}
		if err := s.run(ctx, statement.SQL); err != nil {
			return err
		}
	}
	return commit()
}
