package report

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func example() Plan {
	p := Plan{FormatVersion: PlanFormatVersion, Dialect: DialectPostgreSQL, ServerMajor: "17", TransactionMode: TransactionFile,
		FromFingerprint: Digest([]byte("from")), ToFingerprint: Digest([]byte("to")), Exclude: []string{"audit.*"},
		Statements: []Statement{
			{SQL: "CREATE TABLE a<b> (id int)", Kind: "CREATE TABLE", Severity: SeveritySafe, LockClass: "none", RewriteRisk: RewriteNone},
			{SQL: "GRANT SELECT ON a TO reader", Kind: "GRANT", Severity: SeverityWarning, LockClass: "none", RewriteRisk: RewriteNone,
				PrivilegeChanges: []PrivilegeChange{PrivilegeGrant}},
			{SQL: "DROP TABLE b", Kind: "DROP TABLE", Severity: SeverityDestructive, LockClass: "ACCESS EXCLUSIVE", RewriteRisk: RewriteNone},
		}}
	p.Summarise()
	return p
}

func TestAPlanHasOneEncoding(t *testing.T) {
	first, err := EncodePlan(example())
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := DecodePlan(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := EncodePlan(*decoded)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("a decoded plan is encoded differently: %v", err)
	}
	if !decoded.Destructive || len(decoded.PrivilegeChanges) != 1 {
		t.Errorf("the summary is lost: %+v", decoded)
	}
	if !bytes.HasSuffix(first, []byte("}\n")) || !bytes.Contains(first, []byte("a<b>")) {
		t.Errorf("the encoding has an unexpected form: %s", first)
	}
	empty := example()
	empty.Exclude = nil
	data, err := EncodePlan(empty)
	if err != nil || !bytes.Contains(data, []byte(`"exclude":[]`)) {
		t.Errorf("an empty list is not written as []: %v %s", err, data)
	}
}

func TestDecodePlanRefuses(t *testing.T) {
	good, err := EncodePlan(example())
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, new string) []byte {
		out := bytes.Replace(good, []byte(old), []byte(new), 1)
		if bytes.Equal(out, good) {
			t.Fatalf("%q is not in the plan", old)
		}
		return out
	}
	for name, data := range map[string][]byte{
		"nothing":                              nil,
		"an unknown field":                     replace(`"dialect"`, `"extra":1,"dialect"`),
		"a repeated field":                     replace(`"dialect":"postgresql"`, `"dialect":"postgresql","dialect":"postgresql"`),
		"a field in other letter case":         replace(`"dialect"`, `"Dialect"`),
		"a second document":                    append(bytes.Clone(good), good...),
		"no newline at the end":                bytes.TrimSuffix(good, []byte("\n")),
		"a blank more":                         replace(`{"formatVersion"`, `{ "formatVersion"`),
		"another format version":               replace(`"formatVersion":1`, `"formatVersion":2`),
		"an unknown dialect":                   replace(`"postgresql"`, `"oracle"`),
		"an unknown transaction mode":          replace(`"transactionMode":"file"`, `"transactionMode":"some"`),
		"a malformed fingerprint":              replace(Digest([]byte("from")), "sha256:00"),
		"an unknown severity":                  replace(`"severity":"safe"`, `"severity":"harmless"`),
		"an unknown rewrite risk":              replace(`"rewriteRisk":"none"`, `"rewriteRisk":"no"`),
		"an unknown privilege change":          replace(`["Grant"]`, `["Gift"]`),
		"an empty statement":                   replace(`"sql":"DROP TABLE b"`, `"sql":" "`),
		"a statement with NUL":                 replace(`DROP TABLE b`, `DROP TABLE b\u0000`),
		"destructive hidden in the summary":    replace(`"destructive":true`, `"destructive":false`),
		"a privilege hidden in the summary":    replace(`"privilegeChanges":["Grant"],"statements"`, `"privilegeChanges":[],"statements"`),
		"an escape where the encoder has none": replace(`a<b>`, `a\u003cb>`),
		"no statement":                         []byte(strings.Split(string(good), `"statements":`)[0] + `"statements":[]}` + "\n"),
		"more than the largest plan":           bytes.Repeat([]byte(" "), MaxPlanBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodePlan(data); err == nil {
				t.Error("it was accepted")
			}
			if _, err := scan(data); err == nil {
				t.Error("it was accepted where it is read one statement at a time")
			}
		})
	}
}

// scan reads a document with ScanPlan and puts it together again.
func scan(data []byte) (*Plan, error) {
	var statements []Statement
	plan, err := ScanPlan(bytes.NewReader(data), bytes.NewReader(data), func(s *Statement) error {
		statements = append(statements, *s)
		return nil
	})
	if err == nil {
		plan.Statements = statements
	}
	return plan, err
}

func TestTheLargestPlanIsAcceptedAndOneByteMoreIsNot(t *testing.T) {
	size := func(n int) Plan {
		p := example()
		p.Statements[0].SQL = strings.Repeat("x", n)
		return p
	}
	small, err := EncodePlan(size(1))
	if err != nil {
		t.Fatal(err)
	}
	room := MaxPlanBytes - len(small) + 1
	largest, err := EncodePlan(size(room))
	if err != nil || len(largest) != MaxPlanBytes {
		t.Fatalf("%d bytes: %v", len(largest), err)
	}
	if _, err := DecodePlan(largest); err != nil {
		t.Errorf("the largest plan is not read: %v", err)
	}
	if _, err := EncodePlan(size(room + 1)); !errors.Is(err, ErrPlanTooLarge) {
		t.Errorf("one byte more gives %v", err)
	}
}

func TestEncodePlanRefusesTextThatJSONWouldChange(t *testing.T) {
	p := example()
	p.Statements[0].SQL = "SELECT '\xff'"
	if _, err := EncodePlan(p); err == nil {
		t.Error("bytes that are not UTF-8 would become other bytes")
	}
}

func TestIsDigest(t *testing.T) {
	good := Digest(nil)
	for text, want := range map[string]bool{good: true, strings.ToUpper(good): false, good[1:]: false, good + "0": false,
		good[:70] + "g": false, "": false, "sha512:" + good[7:]: false} {
		if IsDigest(text) != want {
			t.Errorf("IsDigest(%q) is %t", text, !want)
		}
	}
}

func TestWorse(t *testing.T) {
	order := []Severity{"", SeveritySafe, SeverityInfo, SeverityWarning, SeverityError, SeverityDestructive}
	for i, a := range order {
		for j, b := range order {
			if got := Worse(a, b); got != order[max(i, j)] {
				t.Errorf("Worse(%q, %q) is %q", a, b, got)
			}
		}
	}
}

func TestScanPlanGivesTheStatementsInOrderAndStopsWhereItIsTold(t *testing.T) {
	want := example()
	good, err := EncodePlan(want)
	if err != nil {
		t.Fatal(err)
	}
	seen := []string{}
	header, err := ScanPlan(bytes.NewReader(good), bytes.NewReader(good), func(s *Statement) error {
		seen = append(seen, s.SQL)
		return nil
	})
	if err != nil || len(seen) != 3 || seen[2] != "DROP TABLE b" || header.Statements != nil || !header.Destructive || header.ToFingerprint != want.ToFingerprint {
		t.Errorf("%v, %v, %+v", err, seen, header)
	}
	told := errors.New("enough")
	if _, err := ScanPlan(bytes.NewReader(good), bytes.NewReader(good), func(*Statement) error { return told }); !errors.Is(err, told) {
		t.Errorf("error %v", err)
	}
	short := good[:len(good)-20]
	if _, err := ScanPlan(bytes.NewReader(good), bytes.NewReader(short), func(*Statement) error { return nil }); err == nil {
		t.Error("other bytes are the same to it")
	}
	if _, err := ScanPlan(bytes.NewReader(good), bytes.NewReader(append(bytes.Clone(good), ' ')), func(*Statement) error { return nil }); err == nil {
		t.Error("a byte more is the same to it")
	}
}

func FuzzDecodePlan(f *testing.F) {
	good, err := EncodePlan(example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	rows, err := EncodePlan(withRows())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rows)
	f.Add([]byte(`{"formatVersion":1}`))
	f.Add([]byte(`{}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, err := DecodePlan(data)
		scanned, scanErr := scan(data)
		if (err == nil) != (scanErr == nil) && !errors.Is(err, ErrPlanTooLarge) {
			t.Fatalf("read whole: %v; read one statement at a time: %v", err, scanErr)
		}
		if err != nil {
			return
		}
		if !reflect.DeepEqual(plan, scanned) {
			t.Fatalf("read one statement at a time it is another plan: %+v, %+v", plan, scanned)
		}
		again, err := EncodePlan(*plan)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("an accepted document is not its own encoding: %v", err)
		}
	})
}
