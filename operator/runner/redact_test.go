package runner

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

func TestNoCredentialLeavesTheContainer(t *testing.T) {
	for name, leak := range map[string]string{
		"the URL":                  "cannot connect to " + databaseURL,
		"the password as written":  "password s3cr%24t-pw refused",
		"the password decoded":     "password s3cr$t-pw refused",
		"the user part":            "ptah:s3cr%24t-pw is not welcome",
		"another database's URL":   "see postgresql://root:other-secret@h/db",
		"a URL with a user":        "see https://me:other-secret@registry.example/x",
		"a keyword string":         "host=h user=u password=other-secret dbname=d",
		"a quoted keyword string":  "password='other-secret x'",
		"a password in a query":    "?sslmode=disable&password=other-secret",
		"lines between the pieces": "cannot\nconnect to\n" + databaseURL,
	} {
		t.Run(name, func(t *testing.T) {
			b := refreshBench(t)
			edit(b, "schema plan", func(r *report.SchemaPlan) {
				r.Outcome, r.Problem = report.OutcomeFailed, &report.Problem{Code: report.CodeConnection, Message: leak}
			})
			b.wantExit(b.run("database"), ExitFailed)
			document := b.delivered()
			failed := document.Failed()
			for _, text := range []string{failed.Message, failed.Problem.Message, document.Plan.Problem.Message, b.log.String(), string(b.post.documents[0])} {
				for _, secret := range []string{"s3cr", "other-secret"} {
					if strings.Contains(text, secret) {
						t.Errorf("%q is in %q", secret, text)
					}
				}
			}
			if !strings.Contains(failed.Message, redacted) {
				t.Errorf("nothing was redacted in %q", failed.Message)
			}
		})
	}
}

func TestAMessageIsOneBoundedLine(t *testing.T) {
	r := newRedactor()
	long := r.message(strings.Repeat("ö", result.MaxMessageBytes))
	if len(long) > result.MaxMessageBytes || !utf8.ValidString(long) {
		t.Errorf("%d bytes, valid %v", len(long), utf8.ValidString(long))
	}
	if got := r.message("a\n\tb\xff"); got != "a b?" {
		t.Errorf("message %q", got)
	}
	if r.message("") == "" {
		t.Error("an empty message stays empty")
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("hunter22", "user", "the password hunter22 was refused")
	f.Add("p@ss:w/rd?", "u", "x")
	f.Add("s3cr%24t", "", "%")
	f.Fuzz(func(t *testing.T, password, user, around string) {
		said := func(word string) bool { return strings.Contains(word, password) }
		if len(password) < minSecretBytes || slices.ContainsFunc([]string{redacted, "password="}, said) || !utf8.ValidString(password) {
			t.Skip()
		}
		address := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: "db:5432", Path: "/x"}
		r := newRedactor()
		r.addEnvironment(func(name string) (string, bool) { return address.String(), name == env.DatabaseURL })
		for _, text := range []string{around + password + around, address.String() + " " + around} {
			if strings.Contains(around, password) {
				continue
			}
			// Joining what stands around a redaction must not spell the password again, which the length rules out.
			if got := r.text(text); strings.Contains(got, password) && !strings.Contains(strings.ReplaceAll(got, redacted, ""), password) {
				t.Errorf("%q is in %q", password, got)
			} else if strings.Contains(strings.ReplaceAll(got, redacted, "\x00"), password) {
				t.Errorf("%q is in %q", password, got)
			}
		}
	})
}

func FuzzDecodeReport(f *testing.F) {
	f.Add([]byte(`{"contractVersion":1,"outcome":"found","digest":"sha256:x"}`))
	f.Add([]byte(`{"contractVersion":1,"outcome":"failed","problem":{"code":"internal","message":"m"}}`))
	f.Add([]byte(`{"contractVersion":1,"outcome":"found"} 1`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var found report.Resolve
		head, err := decodeReport(data, &found, report.OutcomeFound)
		if err != nil {
			return
		}
		if head.ContractVersion != report.ContractVersion || (head.Outcome == report.OutcomeFound) != (head.Problem == nil) {
			t.Errorf("accepted %q as %+v", data, head)
		}
	})
}

func FuzzAuthority(f *testing.F) {
	f.Add("oci://registry.example:5000/a/b:1")
	f.Add("docker.io/library/x@sha256:00")
	f.Add("user@host/x")
	f.Fuzz(func(t *testing.T, reference string) {
		authority, err := authorityOf(reference)
		if err == nil && (authority == "" || strings.ContainsAny(authority, "/@ \n?#\\") || authority != strings.ToLower(authority)) {
			t.Errorf("authority of %q is %q", reference, authority)
		}
	})
}
