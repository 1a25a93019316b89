package planner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// entries makes entries of lines "TYPE|name|statement".
func entries(lines ...string) []dump.Entry {
	var out []dump.Entry
	for _, line := range lines {
		parts := strings.SplitN(line, "|", 3)
		out = append(out, dump.Entry{Type: parts[0], Schema: "public", Name: parts[1], Statements: []string{parts[2]}})
	}
	return out
}

var neighbours = []string{
	"SCHEMA|s|CREATE SCHEMA s",
	"TYPE|mood|CREATE TYPE public.mood AS ENUM ('a')",
	"FUNCTION|f()|CREATE FUNCTION public.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
	"TABLE|same|CREATE TABLE public.same (id integer)",
	"SEQUENCE|same_id|CREATE SEQUENCE public.same_id",
	"SEQUENCE OWNED BY|same_id|ALTER SEQUENCE public.same_id OWNED BY public.same.id",
	"SEQUENCE|free|CREATE SEQUENCE public.free",
	"SEQUENCE|t_id|ALTER TABLE public.t ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY",
	"VIEW|v|CREATE VIEW public.v AS SELECT 1",
	"DEFAULT|t n|ALTER TABLE ONLY public.t ALTER COLUMN n SET DEFAULT 1",
	"DEFAULT|same id|ALTER TABLE ONLY public.same ALTER COLUMN id SET DEFAULT 1",
	"CONSTRAINT|t t_pk|ALTER TABLE ONLY public.t ADD CONSTRAINT t_pk PRIMARY KEY (id)",
	"CONSTRAINT|same same_pk|ALTER TABLE ONLY public.same ADD CONSTRAINT same_pk PRIMARY KEY (id)",
	"INDEX|t_n|CREATE INDEX t_n ON public.t USING btree (n)",
	"FK CONSTRAINT|t t_fk|ALTER TABLE ONLY public.t ADD CONSTRAINT t_fk FOREIGN KEY (n) REFERENCES public.same(id)",
	"TRIGGER|t g|CREATE TRIGGER g BEFORE UPDATE ON public.t FOR EACH ROW EXECUTE FUNCTION public.f()",
	"COMMENT|TABLE t|COMMENT ON TABLE public.t IS 'x'",
	"ACL|TABLE t|GRANT SELECT ON TABLE public.t TO reader",
	"ACL|TABLE same|GRANT SELECT ON TABLE public.same TO reader",
	"ROW SECURITY|t|ALTER TABLE public.t ENABLE ROW LEVEL SECURITY",
	"DEFAULT ACL|x|ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT SELECT ON TABLES TO reader",
}

func TestTheTablePlannerSeesChangedTablesAndWhatTheyMayUse(t *testing.T) {
	have := append(entries("TABLE|t|CREATE TABLE public.t (id integer, n integer)"), entries(neighbours...)...)
	want := append(entries("TABLE|t|CREATE TABLE public.t (id integer, n bigint)"), entries(neighbours...)...)
	want = append(want, entries("INDEX|t_new|CREATE INDEX t_new ON public.t USING btree (id)")...)
	changed := changedTables(have, want)
	kept := []string{"TABLE t", "SCHEMA s", "TYPE mood", "SEQUENCE free", "SEQUENCE t_id", "DEFAULT t n", "CONSTRAINT t t_pk", "INDEX t_n", "ACL TABLE t", "ROW SECURITY t"}
	for side, pair := range map[string][2][]dump.Entry{"from": {have, want}, "to": {want, have}} {
		got, ok := reduced(pair[0], dump.Index(pair[1]), changed)
		var names []string
		for _, e := range got {
			names = append(names, e.Type+" "+e.Name)
		}
		if !ok || !slices.Equal(names, kept) {
			t.Errorf("%s: %t %q", side, ok, names)
		}
	}
}

func TestAPartitionIsNotSeenWithoutItsParent(t *testing.T) {
	all := entries("TABLE|p|CREATE TABLE public.p (id integer) PARTITION BY LIST (id)", "TABLE|c|CREATE TABLE public.c (id integer)",
		"TABLE|t|CREATE TABLE public.t (id integer)", "TABLE ATTACH|c|ALTER TABLE ONLY public.p ATTACH PARTITION public.c DEFAULT")
	for changed, small := range map[string]bool{"public.p": false, "public.c": false, "public.t": true} {
		if _, ok := reduced(all, dump.Index(all), map[string]bool{changed: true}); ok != small {
			t.Errorf("%s changed: %t", changed, ok)
		}
	}
}

func TestTogetherReturnsTheFirstErrorWhicheverCameEarlier(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	release := make(chan struct{})
	err := together(func() error { <-release; return one }, func() error { defer close(release); return two })
	if !errors.Is(err, one) {
		t.Errorf("%v", err)
	}
	if err := together(func() error { return nil }, func() error { return two }); !errors.Is(err, two) {
		t.Errorf("the second's error is lost: %v", err)
	}
	if err := together(func() error { return nil }, func() error { return nil }); err != nil {
		t.Error(err)
	}
	if broken(&secondError{context.Canceled}) {
		t.Error("a second computation that was stopped counts as a broken server")
	}
}
