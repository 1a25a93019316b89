package apply

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ptah.run/ptah/operator/executor/postgresql/target"
)

// part is one system catalog whose rows are schema. state is what changes when the row's meaning does: the row's xmin
// where nothing but schema changes touch the catalog, a digest of the meaningful columns where more does.
type part struct{ catalog, key, state, where string }

// xmin is the transaction that wrote a row. Freezing keeps it, and vacuum and analyze update statistics in place.
const xmin = "c.xmin::text"

// ofTable leaves out rows of other sessions' temporary tables.
func ofTable(column string) string {
	return "NOT EXISTS (SELECT 1 FROM temporary t WHERE t.oid = c." + column + ")"
}

// parts are the catalogs. Built-in rows of the large ones cannot be changed by an ordinary role and are left out.
var parts = []part{
	{"pg_namespace", "c.oid::text", xmin, "c.nspname !~ '^pg_(toast_)?temp_'"},
	// TRUNCATE, REFRESH and CLUSTER give a relation new storage and change no schema.
	{"pg_class", "c.oid::text", `md5((c.relname, c.relnamespace, c.reltype, c.reloftype, c.relowner, c.relam, c.relkind,
		c.relpersistence, c.relnatts, c.relchecks, c.relrowsecurity, c.relforcerowsecurity, c.relispartition, c.relreplident,
		c.relacl, c.reloptions, c.relpartbound)::text)`, "c.oid >= 16384 AND c.relpersistence <> 't'"},
	{"pg_attribute", "c.attrelid::text || '.' || c.attnum", xmin, "c.attrelid >= 16384 AND " + ofTable("attrelid")},
	{"pg_attrdef", "c.oid::text", xmin, ofTable("adrelid")},
	{"pg_constraint", "c.oid::text", xmin, "c.oid >= 16384 AND " + ofTable("conrelid")},
	{"pg_index", "c.indexrelid::text", xmin, "c.indexrelid >= 16384 AND " + ofTable("indrelid")},
	{"pg_trigger", "c.oid::text", xmin, ofTable("tgrelid")},
	{"pg_policy", "c.oid::text", xmin, ofTable("polrelid")},
	{"pg_rewrite", "c.oid::text", xmin, "c.oid >= 16384 AND " + ofTable("ev_class")},
	{"pg_inherits", "c.inhrelid::text || '.' || c.inhseqno", xmin, ofTable("inhrelid")},
	{"pg_type", "c.oid::text", xmin, "c.oid >= 16384 AND NOT EXISTS (SELECT 1 FROM temporary_namespace n WHERE n.oid = c.typnamespace)"},
	{"pg_proc", "c.oid::text", xmin, "NOT EXISTS (SELECT 1 FROM temporary_namespace n WHERE n.oid = c.pronamespace)"},
	{"pg_sequence", "c.seqrelid::text", xmin, ofTable("seqrelid")},
	{"pg_enum", "c.oid::text", xmin, ""},
	{"pg_range", "c.rngtypid::text", xmin, ""},
	{"pg_aggregate", "c.aggfnoid::oid::text", xmin, "c.aggfnoid >= 16384"},
	{"pg_operator", "c.oid::text", xmin, "c.oid >= 16384"},
	{"pg_collation", "c.oid::text", xmin, "c.oid >= 16384"},
	{"pg_statistic_ext", "c.oid::text", xmin, ofTable("stxrelid")},
	{"pg_partitioned_table", "c.partrelid::text", xmin, ""},
	{"pg_extension", "c.oid::text", xmin, ""},
	{"pg_cast", "c.oid::text", xmin, "c.oid >= 16384"},
	{"pg_event_trigger", "c.oid::text", xmin, ""},
	{"pg_publication", "c.oid::text", xmin, ""},
	{"pg_publication_rel", "c.oid::text", xmin, ""},
	{"pg_ts_config", "c.oid::text", xmin, "c.oid >= 16384"},
	{"pg_ts_dict", "c.oid::text", xmin, "c.oid >= 16384"},
	{"pg_default_acl", "c.oid::text", xmin, ""},
	{"pg_description", "c.classoid::text || '.' || c.objoid || '.' || c.objsubid", xmin, "c.objoid >= 16384 OR c.classoid = 'pg_catalog.pg_namespace'::pg_catalog.regclass"},
}

// catalogQuery returns one row per catalog row: catalog and key, state, and whether this transaction wrote it.
var catalogQuery = buildCatalogQuery()

func buildCatalogQuery() string {
	var b strings.Builder
	b.WriteString(`WITH temporary AS (SELECT oid FROM pg_catalog.pg_class WHERE relpersistence = 't'),
temporary_namespace AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname ~ '^pg_(toast_)?temp_')
`)
	for i, p := range parts {
		if i > 0 {
			b.WriteString("UNION ALL ")
		}
		fmt.Fprintf(&b, "SELECT '%s:' || %s, %s, coalesce(c.xmin = pg_catalog.pg_current_xact_id_if_assigned()::xid, false) FROM pg_catalog.%s c",
			p.catalog, p.key, p.state, p.catalog)
		if p.where != "" {
			b.WriteString(" WHERE " + p.where)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// catalogState is the schema-bearing rows of the system catalogs: key to state, and which of them this transaction wrote.
type catalogState struct {
	rows map[string]string
	own  map[string]bool
}

func readCatalog(ctx context.Context, conn *pgx.Conn) (*catalogState, error) {
	state := &catalogState{map[string]string{}, map[string]bool{}}
	rows, err := conn.Query(ctx, catalogQuery)
	if err != nil {
		return nil, target.Statement(ctx, "reading the catalog", err)
	}
	var key, value string
	var own bool
	_, err = pgx.ForEachRow(rows, []any{&key, &value, &own}, func() error {
		state.rows[key] = value
		if own {
			state.own[key] = true
		}
		return nil
	})
	if err != nil {
		return nil, target.Statement(ctx, "reading the catalog", err)
	}
	return state, nil
}

// same says whether nothing changed between two readings.
func (s *catalogState) same(other *catalogState) bool {
	if len(s.rows) != len(other.rows) {
		return false
	}
	for key, value := range s.rows {
		if got, ok := other.rows[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// foreign says whether a row that this transaction did not write is new or different since an earlier reading.
func (s *catalogState) foreign(before *catalogState) bool {
	for key, value := range s.rows {
		if got, ok := before.rows[key]; !s.own[key] && (!ok || got != value) {
			return true
		}
	}
	return false
}
