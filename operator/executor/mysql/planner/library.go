package planner

import (
	"fmt"
	"log/slog"
	"sync"

	"vitess.io/vitess/go/mysql/collations"
	vitesslog "vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/schemadiff"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vtenv"

	"ptah.run/ptah/operator/executor/mysql/dump"
)

// grammar is the newest version whose grammar and collations Vitess knows. What a newer server prints beyond it stands
// in a version comment, which Vitess passes over; the comparison of the result finds what that loses.
const grammar = "8.4.6"

// vitess makes the library ready once in a process. It logs whole statements, which belong into no log.
var vitess = sync.OnceValues(func() (*schemadiff.Environment, error) {
	vitesslog.SwapLogger(slog.New(slog.DiscardHandler))
	env, err := vtenv.New(vtenv.Options{MySQLServerVersion: grammar})
	if err != nil {
		return nil, fmt.Errorf("prepare Vitess: %w", err)
	}
	return schemadiff.NewEnv(env, collations.NewEnvironment(grammar).DefaultConnectionCharset()), nil
})

// hints: names count, the table's character set counts, partitions that rotate are dropped and added one by one.
var hints = &schemadiff.DiffHints{ConstraintNamesStrategy: schemadiff.ConstraintNamesStrict,
	TableCharsetCollateStrategy: schemadiff.TableCharsetCollateStrict, RangeRotationStrategy: schemadiff.RangeRotationDistinctStatements}

// libraryAlter asks Vitess for the statements that turn one table into another, foreign keys left out on both sides.
func libraryAlter(from, to *dump.Table) ([]string, error) {
	env, err := vitess()
	if err != nil {
		return nil, err
	}
	a, err := schemadiff.NewCreateTableEntityFromSQL(env, from.Bare())
	if err != nil {
		return nil, fmt.Errorf("read a table of the target: %w", err)
	}
	b, err := schemadiff.NewCreateTableEntityFromSQL(env, to.Bare())
	if err != nil {
		return nil, fmt.Errorf("read a table of the desired schema: %w", err)
	}
	diff, err := a.Diff(b, hints)
	if err != nil {
		return nil, fmt.Errorf("compare a table: %w", err)
	}
	var out []string
	for ; diff != nil && !diff.IsEmpty(); diff = diff.SubsequentDiff() {
		statement := diff.Statement()
		if alter, ok := statement.(*sqlparser.AlterTable); ok {
			splitStorageChange(alter, a)
		}
		out = append(out, sqlparser.CanonicalString(statement))
	}
	return out, nil
}

// splitStorageChange turns a MODIFY between a virtual and a stored or plain column, which the server refuses, into
// DROP and ADD.
func splitStorageChange(alter *sqlparser.AlterTable, from *schemadiff.CreateTableEntity) {
	old := map[string]*sqlparser.ColumnDefinition{}
	for _, column := range from.TableSpec.Columns {
		old[column.Name.Lowered()] = column
	}
	var out []sqlparser.AlterOption
	for _, option := range alter.AlterOptions {
		modify, ok := option.(*sqlparser.ModifyColumn)
		if !ok {
			out = append(out, option)
			continue
		}
		column := modify.NewColDefinition
		before := old[column.Name.Lowered()]
		if before == nil || virtual(before) == virtual(column) {
			out = append(out, option)
			continue
		}
		out = append(out, &sqlparser.DropColumn{Name: &sqlparser.ColName{Name: column.Name}},
			&sqlparser.AddColumns{Columns: []*sqlparser.ColumnDefinition{column}, First: modify.First, After: modify.After})
	}
	alter.AlterOptions = out
}

// virtual says whether a column's values are computed when they are read and stored nowhere.
func virtual(c *sqlparser.ColumnDefinition) bool {
	return c.Type.Options != nil && c.Type.Options.As != nil && c.Type.Options.Storage != sqlparser.StoredStorage
}
