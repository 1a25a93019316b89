package executor_test

import (
	"context"
	"database/sql"
	"fmt"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/mysql"
	"ariga.io/atlas/sql/postgres"
	"ariga.io/atlas/sql/schema"
	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/stdlib"

	"ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/mysql/target"
)

// Here Atlas plans, as a library, the way its users do with SQL files: the desired schema is loaded into a development
// database, both databases are inspected, and the difference is planned.

// atlas plans for a PostgreSQL database.
func (c caseRun) atlas(ctx context.Context, want string) (int, error) {
	dev := c.name + "dev"
	if err := c.fill(ctx, dev, ""); err != nil {
		return 0, err
	}
	defer func() { _ = c.server.Remove(context.WithoutCancel(ctx), dev) }()
	sides := map[string]*sql.DB{}
	for _, name := range []string{dev, c.name} {
		config, err := c.server.Config("app", name)
		if err != nil {
			return 0, err
		}
		sides[name] = stdlib.OpenDB(*config)
		defer func() { _ = sides[name].Close() }()
	}
	if want != "" {
		conn, err := c.server.Owner(ctx, dev)
		if err != nil {
			return 0, err
		}
		_, err = conn.PgConn().Exec(ctx, want).ReadAll()
		_ = conn.Close(ctx)
		if err != nil {
			return 0, err
		}
	}
	from, err := postgres.Open(sides[c.name])
	if err != nil {
		return 0, err
	}
	to, err := postgres.Open(sides[dev])
	if err != nil {
		return 0, err
	}
	return atlasPlan(ctx, from, to)
}

// atlasPlan compares two databases whole.
func atlasPlan(ctx context.Context, from, to migrate.Driver) (int, error) {
	have, err := from.InspectRealm(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("inspect the database: %w", err)
	}
	want, err := to.InspectRealm(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("inspect the desired schema: %w", err)
	}
	changes, err := from.RealmDiff(have, want, schema.DiffNormalized())
	if err != nil {
		return 0, fmt.Errorf("compare: %w", err)
	}
	plan, err := from.PlanChanges(ctx, "plan", changes)
	if err != nil {
		return 0, fmt.Errorf("plan: %w", err)
	}
	return len(plan.Changes), nil
}

// atlas plans for a MySQL database.
func (c mysqlCase) atlas(ctx context.Context, want string) (int, error) {
	dev := c.name + "dev"
	if err := makeMySQL(ctx, c.server, dev); err != nil {
		return 0, err
	}
	defer func() { _ = dropMySQL(context.WithoutCancel(ctx), c.server, dev) }()
	if err := loadMySQL(ctx, c.server, dev, want); err != nil {
		return 0, err
	}
	sides := map[string]migrate.Driver{}
	for _, name := range []string{dev, c.name} {
		connector, err := driver.NewConnector(c.server.Config("app", name))
		if err != nil {
			return 0, err
		}
		db := sql.OpenDB(connector)
		defer func() { _ = db.Close() }()
		if sides[name], err = mysql.Open(db); err != nil {
			return 0, err
		}
	}
	have, err := sides[c.name].InspectSchema(ctx, c.name, nil)
	if err != nil {
		return 0, fmt.Errorf("inspect the database: %w", err)
	}
	desired, err := sides[dev].InspectSchema(ctx, dev, nil)
	if err != nil {
		return 0, fmt.Errorf("inspect the desired schema: %w", err)
	}
	desired.Name = have.Name
	changes, err := sides[c.name].SchemaDiff(have, desired, schema.DiffNormalized())
	if err != nil {
		return 0, fmt.Errorf("compare: %w", err)
	}
	plan, err := sides[c.name].PlanChanges(ctx, "plan", changes, func(o *migrate.PlanOptions) { o.SchemaQualifier = new(string) })
	if err != nil {
		return 0, fmt.Errorf("plan: %w", err)
	}
	return len(plan.Changes), nil
}

func dropMySQL(ctx context.Context, server *scratch.Server, name string) error {
	admin, err := target.Open(ctx, server.Config(server.AdminName(), ""), 0)
	if err != nil {
		return err
	}
	defer admin.Close()
	_, err = admin.ExecContext(ctx, "DROP DATABASE "+name)
	return err
}
