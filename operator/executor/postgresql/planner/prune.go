package planner

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// dropsAtOnce bounds how many entries are dropped in one transaction. One that something depends on makes the whole
// transaction fail, which is then tried in halves.
const dropsAtOnce = 64

// dropBatch drops entries in the order given, each on all of its sides or on none: what something on either side depends
// on stays on both. It never cascades.
type dropBatch struct {
	drops []string
	sides []*session
}

// add drops an entry, now or with the ones that follow.
func (b *dropBatch) add(ctx context.Context, e dump.Entry, sides []*session) error {
	drops, err := e.Drop()
	if err != nil || len(drops) != 1 {
		return err
	}
	if len(b.drops) == dropsAtOnce || !slices.Equal(b.sides, sides) {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.drops, b.sides = append(b.drops, drops[0]), sides
	return nil
}

// flush drops what was added and not dropped yet.
func (b *dropBatch) flush(ctx context.Context) error {
	drops := b.drops
	b.drops = nil
	return dropTogether(ctx, drops, b.sides)
}

func dropTogether(ctx context.Context, drops []string, sides []*session) error {
	if len(drops) == 0 {
		return nil
	}
	dropped, err := dropOrNot(ctx, drops, sides)
	if err != nil || dropped || len(drops) == 1 {
		return err
	}
	half := len(drops) / 2
	if err := dropTogether(ctx, drops[:half], sides); err != nil {
		return err
	}
	return dropTogether(ctx, drops[half:], sides)
}

// dropOrNot runs all statements on all sides, or none on any.
func dropOrNot(ctx context.Context, drops []string, sides []*session) (bool, error) {
	end := "COMMIT"
	for _, side := range sides {
		if err := exec(ctx, side.owner, "BEGIN"); err != nil {
			return false, err
		}
		if end == "ROLLBACK" {
			continue
		}
		batch := &pgconn.Batch{}
		for _, drop := range drops {
			batch.ExecParams(drop, nil, nil, nil, nil) // each text is one statement, or the server refuses it
		}
		if _, err := side.owner.PgConn().ExecBatch(ctx, batch).ReadAll(); err != nil {
			if !isServerError(err) {
				return false, err
			}
			end = "ROLLBACK"
		}
	}
	for _, side := range sides {
		if err := exec(ctx, side.owner, end); err != nil {
			return false, err
		}
	}
	return end == "COMMIT", nil
}
