package classify

import (
	"slices"
	"testing"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/plan/report"
)

// before is what the database holds in these tests.
var before = []dump.Entry{
	{Type: "TABLE", Statements: []string{`CREATE TABLE public.t (
    id integer NOT NULL,
    name character varying(20),
    note text,
    price numeric(10,2),
    CONSTRAINT t_check CHECK ((id > 0))
)`}},
	{Type: "CONSTRAINT", Statements: []string{"ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (id)"}},
	{Type: "FK CONSTRAINT", Statements: []string{"ALTER TABLE ONLY public.t ADD CONSTRAINT t_fk FOREIGN KEY (id) REFERENCES public.u(id)"}},
	{Type: "INDEX", Statements: []string{"CREATE INDEX plain ON public.t USING btree (note)"}},
	{Type: "INDEX", Statements: []string{"CREATE UNIQUE INDEX keys ON public.t USING btree (name)"}},
}

const (
	safe        = report.SeveritySafe
	warning     = report.SeverityWarning
	destructive = report.SeverityDestructive
)

func TestStatement(t *testing.T) {
	for sql, want := range map[string]report.Statement{
		"CREATE TABLE public.n (id integer)":                                                 {Kind: "CREATE TABLE", Severity: safe, LockClass: none, RewriteRisk: "none"},
		"CREATE TABLE public.n PARTITION OF public.p FOR VALUES IN (1)":                      {Kind: "CREATE TABLE", Severity: safe, LockClass: accessExclusive, RewriteRisk: "scan"},
		"CREATE INDEX i ON public.t (note)":                                                  {Kind: "CREATE INDEX", Severity: safe, LockClass: share, RewriteRisk: "table"},
		"CREATE INDEX CONCURRENTLY i ON public.t (note)":                                     {Kind: "CREATE INDEX CONCURRENTLY", Severity: safe, LockClass: shareUpdateExclusive, RewriteRisk: "table"},
		"CREATE UNIQUE INDEX i ON public.t (note)":                                           {Kind: "CREATE INDEX", Severity: warning, LockClass: share, RewriteRisk: "table"},
		"DROP TABLE public.t":                                                                {Kind: "DROP TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP VIEW public.v":                                                                 {Kind: "DROP VIEW", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP VIEW public.v CASCADE":                                                         {Kind: "DROP VIEW", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP MATERIALIZED VIEW public.v":                                                    {Kind: "DROP MATERIALIZED VIEW", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP INDEX public.plain":                                                            {Kind: "DROP INDEX", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP INDEX public.keys":                                                             {Kind: "DROP INDEX", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP INDEX public.unheard_of":                                                       {Kind: "DROP INDEX", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP FUNCTION public.f()":                                                           {Kind: "DROP FUNCTION", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP TYPE public.e":                                                                 {Kind: "DROP TYPE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP SCHEMA s":                                                                      {Kind: "DROP SCHEMA", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP SEQUENCE public.s":                                                             {Kind: "DROP SEQUENCE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP EXTENSION x":                                                                   {Kind: "DROP EXTENSION", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP TRIGGER a ON public.t":                                                         {Kind: "DROP TRIGGER", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"DROP POLICY p ON public.t":                                                          {Kind: "DROP POLICY", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none", PrivilegeChanges: rowSecurity},
		"ALTER TABLE public.t ADD COLUMN x integer":                                          {Kind: "ALTER TABLE", Severity: safe, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ADD COLUMN x integer DEFAULT 3 NOT NULL":                       {Kind: "ALTER TABLE", Severity: safe, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ADD COLUMN x integer NOT NULL":                                 {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ADD COLUMN x timestamptz DEFAULT now()":                        {Kind: "ALTER TABLE", Severity: safe, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.t ADD COLUMN x int GENERATED ALWAYS AS (id) STORED":              {Kind: "ALTER TABLE", Severity: safe, LockClass: accessExclusive, RewriteRisk: "table"},
		"ALTER TABLE public.t DROP COLUMN note":                                              {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ADD COLUMN x integer, DROP COLUMN note":                        {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ALTER COLUMN id TYPE bigint":                                   {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "table"},
		"ALTER TABLE public.t ALTER COLUMN id TYPE smallint":                                 {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.t ALTER COLUMN name TYPE varchar(30)":                            {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ALTER COLUMN name TYPE varchar(10)":                            {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.t ALTER COLUMN name TYPE text":                                   {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ALTER COLUMN name TYPE text[]":                                 {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.t ALTER COLUMN note TYPE varchar(10)":                            {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.t ALTER COLUMN price TYPE numeric(12,2)":                         {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ALTER COLUMN price TYPE numeric(12,1)":                         {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.t ALTER COLUMN unheard_of TYPE bigint":                           {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.t ALTER COLUMN id SET NOT NULL":                                  {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "scan"},
		"ALTER TABLE public.t ALTER COLUMN id SET DEFAULT 1":                                 {Kind: "ALTER TABLE", Severity: safe, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t SET (fillfactor = 70)":                                         {Kind: "ALTER TABLE", Severity: safe, LockClass: shareUpdateExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ADD CONSTRAINT c CHECK (id > 0)":                               {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "scan"},
		"ALTER TABLE public.t ADD CONSTRAINT c CHECK (id > 0) NOT VALID":                     {Kind: "ALTER TABLE", Severity: safe, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ADD CONSTRAINT c FOREIGN KEY (id) REFERENCES public.u(id)":     {Kind: "ALTER TABLE", Severity: warning, LockClass: shareRowExclusive, RewriteRisk: "scan"},
		"ALTER TABLE public.t ADD CONSTRAINT c UNIQUE (id)":                                  {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "table"},
		"ALTER TABLE public.t ADD CONSTRAINT c UNIQUE USING INDEX i":                         {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t DROP CONSTRAINT t_check":                                       {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t DROP CONSTRAINT t_fk":                                          {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t DROP CONSTRAINT t_pkey":                                        {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t DROP CONSTRAINT unheard_of":                                    {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t DETACH PARTITION public.c":                                     {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t SET UNLOGGED":                                                  {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "table"},
		"ALTER TABLE public.t OWNER TO x":                                                    {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none", PrivilegeChanges: privileges("Ownership")},
		"ALTER TABLE public.t ENABLE ROW LEVEL SECURITY":                                     {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none", PrivilegeChanges: rowSecurity},
		"ALTER TABLE public.t DISABLE ROW LEVEL SECURITY":                                    {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none", PrivilegeChanges: rowSecurity},
		"ALTER TABLE public.t DISABLE TRIGGER ALL":                                           {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.t ENABLE ALWAYS TRIGGER tr":                                      {Kind: "ALTER TABLE", Severity: warning, LockClass: shareRowExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t DISABLE TRIGGER tr":                                            {Kind: "ALTER TABLE", Severity: warning, LockClass: shareRowExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ENABLE REPLICA RULE r":                                         {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t RESET (fillfactor, toast.vacuum_truncate, autovacuum_enabled)": {Kind: "ALTER TABLE", Severity: safe, LockClass: shareUpdateExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t SET (fillfactor = 70, user_catalog_table = true)":              {Kind: "ALTER TABLE", Severity: safe, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER INDEX public.i SET (fastupdate = off)":                                        {Kind: "ALTER INDEX", Severity: safe, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER INDEX public.i SET (fillfactor = 50)":                                         {Kind: "ALTER INDEX", Severity: safe, LockClass: shareUpdateExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t SET LOGGED":                                                    {Kind: "ALTER TABLE", Severity: safe, LockClass: accessExclusive, RewriteRisk: "table"},
		"ALTER SEQUENCE public.s SET UNLOGGED":                                               {Kind: "ALTER SEQUENCE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "table"},
		"ALTER TABLE public.t INHERIT public.p":                                              {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t NO INHERIT public.p":                                           {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TABLE public.t ALTER COLUMN id TYPE bigint USING id::bigint":                  {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "table"},
		"ALTER TABLE public.t ALTER COLUMN id TYPE bigint USING 0":                           {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.t ALTER COLUMN note TYPE public.e USING note::text::public.e":    {Kind: "ALTER TABLE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"ALTER TABLE public.p ATTACH PARTITION public.t FOR VALUES FROM (1) TO (2)":          {Kind: "ALTER TABLE", Severity: warning, LockClass: accessExclusive, RewriteRisk: "scan"},
		"ALTER TYPE public.e RENAME TO e__ptah_old":                                          {Kind: "RENAME", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER STATISTICS public.s SET STATISTICS 7":                                         {Kind: "ALTER STATISTICS", Severity: safe, LockClass: shareUpdateExclusive, RewriteRisk: "none"},
		"ALTER PUBLICATION p DROP TABLE public.t":                                            {Kind: "ALTER PUBLICATION", Severity: warning, LockClass: shareUpdateExclusive, RewriteRisk: "none"},
		"DROP DOMAIN public.d":                                                               {Kind: "DROP DOMAIN", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER TYPE public.e ADD VALUE 'x'":                                                  {Kind: "ALTER TYPE", Severity: warning, LockClass: none, RewriteRisk: "none"},
		"ALTER TYPE public.c DROP ATTRIBUTE a":                                               {Kind: "ALTER TYPE", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "none"},
		"ALTER DOMAIN public.d ADD CONSTRAINT c CHECK (VALUE > 0)":                           {Kind: "ALTER DOMAIN", Severity: warning, LockClass: share, RewriteRisk: "scan"},
		"CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'":                  {Kind: "CREATE FUNCTION", Severity: safe, LockClass: none, RewriteRisk: "none"},
		"CREATE OR REPLACE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'":       {Kind: "CREATE OR REPLACE FUNCTION", Severity: warning, LockClass: none, RewriteRisk: "none", PrivilegeChanges: privileges("FunctionReplacement")},
		"CREATE FUNCTION public.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'": {Kind: "CREATE FUNCTION", Severity: warning, LockClass: none, RewriteRisk: "none", PrivilegeChanges: privileges("SecurityDefiner")},
		"CREATE FUNCTION public.f() RETURNS int LANGUAGE sql SECURITY INVOKER AS 'SELECT 1'": {Kind: "CREATE FUNCTION", Severity: safe, LockClass: none, RewriteRisk: "none"},
		"CREATE VIEW public.v WITH (security_invoker='false') AS SELECT 1":                   {Kind: "CREATE VIEW", Severity: safe, LockClass: accessShare, RewriteRisk: "none", PrivilegeChanges: privileges("SecurityDefiner")},
		"GRANT SELECT ON TABLE public.t TO r":                                                {Kind: "GRANT", Severity: warning, LockClass: none, RewriteRisk: "none", PrivilegeChanges: privileges("Grant")},
		"REVOKE SELECT ON TABLE public.t FROM r":                                             {Kind: "REVOKE", Severity: warning, LockClass: none, RewriteRisk: "none", PrivilegeChanges: privileges("Revoke")},
		"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO r":                               {Kind: "ALTER DEFAULT PRIVILEGES", Severity: warning, LockClass: none, RewriteRisk: "none", PrivilegeChanges: privileges("Grant")},
		"GRANT a TO b":                             {Kind: "GRANT ROLE", Severity: warning, LockClass: none, RewriteRisk: "none", PrivilegeChanges: privileges("RoleMembership")},
		"CREATE ROLE r":                            {Kind: "ROLE", Severity: destructive, LockClass: none, RewriteRisk: "none", PrivilegeChanges: privileges("Role")},
		"CREATE SCHEMA s AUTHORIZATION r":          {Kind: "CREATE SCHEMA", Severity: safe, LockClass: none, RewriteRisk: "none", PrivilegeChanges: privileges("Ownership")},
		"CREATE POLICY p ON public.t USING (true)": {Kind: "CREATE POLICY", Severity: warning, LockClass: accessExclusive, RewriteRisk: "none", PrivilegeChanges: rowSecurity},
		"COMMENT ON TABLE public.t IS 'x'":         {Kind: "COMMENT", Severity: safe, LockClass: shareUpdateExclusive, RewriteRisk: "none"},
		`ANALYZE "public"."t" ("note")`:            {Kind: "ANALYZE", Severity: safe, LockClass: shareUpdateExclusive, RewriteRisk: "scan"},
		"SELECT pg_catalog.setval('public.s', last_value, is_called) FROM public.o": {Kind: "SET SEQUENCE VALUE", Severity: warning, LockClass: none, RewriteRisk: "none"},
		"SELECT pg_catalog.setval('public.s', (SELECT evil()), true)":               {Kind: "SELECT", Severity: destructive, LockClass: none, RewriteRisk: "maybe"},
		"SELECT evil()":                   {Kind: "SELECT", Severity: destructive, LockClass: none, RewriteRisk: "maybe"},
		"VACUUM FULL public.t":            {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"TRUNCATE public.t":               {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"DELETE FROM public.t":            {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"UPDATE public.t SET id = 1":      {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"DO $$ BEGIN END $$":              {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"CREATE TABLE a (); DROP TABLE b": {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"NOT SQL AT ALL":                  {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		"":                                {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
	} {
		got := New(before).Statement(sql)
		if got.Kind != want.Kind || got.Severity != want.Severity || got.LockClass != want.LockClass || got.RewriteRisk != want.RewriteRisk ||
			!slices.Equal(got.PrivilegeChanges, want.PrivilegeChanges) || got.SQL != sql {
			t.Errorf("%s\n is %+v\n not %+v", sql, got, want)
		}
		if got.Severity != safe && got.Reason == "" {
			t.Errorf("%s has no reason", sql)
		}
	}
}

func privileges(names ...report.PrivilegeChange) []report.PrivilegeChange { return names }

func TestWhatHappensToANewTableIsHarmless(t *testing.T) {
	c := New(before)
	for _, step := range []struct {
		sql  string
		want report.Severity
		lock string
	}{
		{"CREATE TABLE public.n (id integer)", safe, none},
		{"ALTER TABLE public.n ADD CONSTRAINT k PRIMARY KEY (id)", safe, none},
		{"CREATE UNIQUE INDEX n_i ON public.n (id)", safe, none},
		{"ALTER TABLE public.n ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES public.t(id)", warning, shareRowExclusive},
		{"ALTER TABLE public.n ADD CONSTRAINT g FOREIGN KEY (id) REFERENCES public.n(id)", safe, none},
		{"ALTER TABLE public.n DROP COLUMN id", destructive, accessExclusive},
		{"ALTER TABLE public.t ADD CONSTRAINT h UNIQUE (note)", warning, accessExclusive},
		{"ALTER TABLE public.t DROP CONSTRAINT h", destructive, accessExclusive},
		{"ALTER TABLE public.t ADD CONSTRAINT tmp CHECK (id IS NOT NULL) NOT VALID", safe, accessExclusive},
		{"ALTER TABLE public.t DROP CONSTRAINT tmp", warning, accessExclusive},
	} {
		if got := c.Statement(step.sql); got.Severity != step.want || got.LockClass != step.lock {
			t.Errorf("%s is %s with lock %s", step.sql, got.Severity, got.LockClass)
		}
	}
}

func TestRelations(t *testing.T) {
	for sql, want := range map[string][]Relation{
		"ALTER TABLE public.t ADD COLUMN x integer":                                 {{"public", "t"}},
		"DROP INDEX public.plain":                                                   {{"public", "plain"}, {"public", "t"}},
		"DROP TRIGGER a ON public.t":                                                {{"public", "t"}},
		`DROP TABLE "S"."Or der", public.t`:                                         {{"S", "Or der"}, {"public", "t"}},
		"CREATE VIEW public.v AS SELECT * FROM public.t":                            {{"public", "v"}},
		"ALTER TABLE public.x ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES public.t": {{"public", "x"}, {"public", "t"}},
		"COMMENT ON COLUMN public.t.id IS 'x'":                                      {{"public", "t"}},
		"GRANT SELECT ON TABLE public.t TO r":                                       {{"public", "t"}},
		"CREATE INDEX i ON public.t (note)":                                         {{"public", "t"}},
		"UPDATE public.t SET id = 1":                                                {{"public", "t"}},
		"CREATE SEQUENCE public.s":                                                  {{"public", "s"}},
		"NOT SQL":                                                                   nil,
	} {
		got := New(before).Relations(sql)
		order := func(a, b Relation) int { return slices.Compare([]string{a.Schema, a.Name}, []string{b.Schema, b.Name}) }
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if !slices.Equal(got, want) {
			t.Errorf("%s touches %v", sql, got)
		}
	}
}
