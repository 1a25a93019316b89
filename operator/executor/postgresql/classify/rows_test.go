package classify

import (
	"slices"
	"testing"

	"ptah.run/ptah/operator/plan/report"
)

func TestChangesOfRows(t *testing.T) {
	for sql, want := range map[string]report.Statement{
		`INSERT INTO "public"."t" ("id", "note") VALUES (-1, E'a\\b'), (2, NULL)`:           {Kind: "INSERT", Severity: safe, LockClass: rowExclusive, RewriteRisk: "none"},
		`INSERT INTO "public"."t" ("id") OVERRIDING SYSTEM VALUE VALUES (1.5)`:              {Kind: "INSERT", Severity: safe, LockClass: rowExclusive, RewriteRisk: "none"},
		`UPDATE "public"."t" SET "note" = 'x' WHERE "id" = 1`:                               {Kind: "UPDATE", Severity: destructive, LockClass: rowExclusive, RewriteRisk: "none"},
		`DELETE FROM "public"."t" WHERE "id" = 1`:                                           {Kind: "DELETE", Severity: destructive, LockClass: rowExclusive, RewriteRisk: "none"},
		`INSERT INTO public.t (id) VALUES (f())`:                                            {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		`INSERT INTO public.t SELECT 1`:                                                     {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		`INSERT INTO public.t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET note = 'x'`:    {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		`INSERT INTO public.t (id) VALUES (1) RETURNING f(id)`:                              {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		`WITH x AS (DELETE FROM public.u RETURNING 1) INSERT INTO public.t (id) VALUES (1)`: {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		`UPDATE public.t SET id = 1`:                                                        {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
		`DELETE FROM public.t USING public.u WHERE true`:                                    {Kind: "unknown", Severity: destructive, LockClass: accessExclusive, RewriteRisk: "maybe"},
	} {
		got := New(before).Statement(sql)
		if got.Kind != want.Kind || got.Severity != want.Severity || got.LockClass != want.LockClass || got.RewriteRisk != want.RewriteRisk {
			t.Errorf("%s: %+v", sql, got)
		}
		if named := New(before).Relations(sql); !slices.Contains(named, Relation{"public", "t"}) {
			t.Errorf("%s touches %v", sql, named)
		}
	}
}
