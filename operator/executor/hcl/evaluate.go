package hcl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ariga.io/atlas/schemahcl"
	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/mysql"
	"ariga.io/atlas/sql/postgres"
	"ariga.io/atlas/sql/schema"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

// File is one file of a schema. All files of a schema are read together: one may refer to what another declares.
type File struct {
	Name string
	Data []byte
}

// Statement is SQL that was made from a declaration.
type Statement struct {
	SQL string
	// File and Line are where what it makes is declared.
	File string
	Line int
}

// Limits of what is read: HCL is parsed and evaluated by recursion.
const (
	// MaxFileBytes is the size of the largest file, in bytes: 4 MiB, or some five thousand tables.
	MaxFileBytes = 4 << 20
	maxDepth     = 100
)

// engine is what differs between PostgreSQL and MySQL.
type engine struct {
	mysql    bool
	evaluate schemahcl.Evaluator
	plan     migrate.PlanApplier
	format   func(schema.Type) (string, error)
	// charset and collation are the defaults of a MySQL database.
	charset, collation string
}

// PostgreSQL returns the statements that make what the files declare, in an order in which they can run. Names come out
// with their schema. An error is a *failure.Error that says what is not supported, in which file and line.
func PostgreSQL(files []File) ([]Statement, error) {
	return engine{evaluate: postgres.EvalHCL, plan: postgres.DefaultPlan, format: postgres.FormatType}.statements(files)
}

// MySQL does the same for a MySQL database with the given default character set and collation. Names come out without
// the name of the one schema that the files declare: it is the database of the target, whatever that is called.
func MySQL(files []File, charset, collation string) ([]Statement, error) {
	return engine{mysql: true, evaluate: mysql.EvalHCL, plan: mysql.DefaultPlan, format: mysql.FormatType, charset: charset,
		collation: collation}.statements(files)
}

func (e engine) statements(files []File) ([]Statement, error) {
	parser := hclparse.NewParser()
	w := newWalker(e.mysql)
	for _, file := range slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) }) {
		body, err := parse(parser, file)
		if err != nil {
			return nil, err
		}
		if err := w.file(body); err != nil {
			return nil, err
		}
	}
	realm := &schema.Realm{}
	if err := guarded("evaluate", func() error { return e.evaluate.Eval(parser, realm, nil) }); err != nil {
		return nil, err
	}
	if err := e.complete(w, realm); err != nil {
		return nil, err
	}
	changes, err := e.changes(w, realm)
	if err != nil {
		return nil, err
	}
	var plan *migrate.Plan
	err = guarded("turn into SQL", func() (err error) {
		plan, err = e.plan.PlanChanges(context.Background(), "desired", changes, func(o *migrate.PlanOptions) {
			if e.mysql {
				o.SchemaQualifier = new(string)
			}
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return w.located(plan), nil
}

// parse reads one file, and refuses it before that where reading it would take more than there is.
func parse(parser *hclparse.Parser, file File) (*hclsyntax.Body, error) {
	at := hcl.Range{Filename: file.Name, Start: hcl.Pos{Line: 1}}
	if len(file.Data) > MaxFileBytes {
		return nil, refuse(at, "the file is larger than %d bytes; split it", MaxFileBytes)
	}
	tokens, _ := hclsyntax.LexConfig(file.Data, file.Name, hcl.InitialPos) // what is wrong with it the parser says, too
	depth, run := 0, 0
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenOBrace, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace, hclsyntax.TokenTemplateSeqEnd:
			depth--
		case hclsyntax.TokenMinus, hclsyntax.TokenBang, hclsyntax.TokenQuestion, hclsyntax.TokenColon:
			run++
		case hclsyntax.TokenNewline:
			run = 0
		}
		if depth > maxDepth || run > maxDepth {
			return nil, refuse(token.Range, "the file is nested more than %d deep; write plain values", maxDepth)
		}
	}
	parsed, problems := parser.ParseHCL(file.Data, file.Name)
	if problems.HasErrors() {
		first := problems.Errs()[0]
		for _, problem := range problems {
			if problem.Severity == hcl.DiagError && problem.Subject != nil {
				at, first = *problem.Subject, problem
				break
			}
		}
		return nil, detailed(refuse(at, "the file cannot be read as HCL; correct this line"), first)
	}
	body, ok := parsed.Body.(*hclsyntax.Body)
	if !ok {
		return nil, refuse(at, "the file is not HCL in its own syntax")
	}
	return body, nil
}

// detailed puts what lies behind an error where only a person reads it.
func detailed(err error, cause error) error {
	var problem *failure.Error
	if errors.As(err, &problem) {
		problem.Detail = cause.Error()
	}
	return err
}

// guarded runs a part of Atlas, whose errors repeat names and which may give up altogether.
func guarded(what string, run func() error) (err error) {
	refusal := failure.New(report.CodeInvalidSchema, "Atlas cannot "+what+" the schema's .hcl files; compare what they refer to with what they declare")
	defer func() {
		if cause := recover(); cause != nil {
			refusal.Detail = fmt.Sprint(cause)
			err = refusal
		}
	}()
	if err := run(); err != nil {
		refusal.Detail = err.Error()
		return refusal
	}
	return nil
}

// standardComment is what every new database says of its schema public.
const standardComment = "standard public schema"

// changes are what makes an empty database hold the realm.
func (e engine) changes(w *walker, realm *schema.Realm) ([]schema.Change, error) {
	var out []schema.Change
	if e.mysql && len(realm.Schemas) != 1 {
		at := hcl.Range{Filename: "schema.hcl", Start: hcl.Pos{Line: 1}}
		for _, other := range w.names {
			if cmp.Or(cmp.Compare(other.Filename, at.Filename), cmp.Compare(other.Start.Line, at.Start.Line)) > 0 || len(w.names) == 1 {
				at = other
			}
		}
		return nil, refuse(at, "the files declare %d schemas; a MySQL database is one, so declare one", len(realm.Schemas))
	}
	for _, s := range realm.Schemas {
		switch comment, found := commentOf(s.Attrs); {
		case e.mysql:
			if err := e.checkDefaults(w, s); err != nil {
				return nil, err
			}
		case s.Name != "public":
			out = append(out, &schema.AddSchema{S: s})
		case found && comment != standardComment:
			return nil, refuse(w.names[s.Name], "the comment of the schema public is not planned from HCL; write COMMENT ON SCHEMA in an .sql file")
		}
	}
	for _, s := range realm.Schemas {
		for _, o := range s.Objects {
			out = append(out, &schema.AddObject{O: o})
		}
	}
	for _, s := range realm.Schemas {
		for _, t := range s.Tables {
			out = append(out, &schema.AddTable{T: t})
		}
	}
	return out, nil
}

func commentOf(attrs []schema.Attr) (string, bool) {
	for _, a := range attrs {
		if c, ok := a.(*schema.Comment); ok {
			return c.Text, true
		}
	}
	return "", false
}

// checkDefaults refuses defaults of a MySQL schema that are not those of the target's database, which are not planned,
// and lets Atlas know the real ones: it leaves out what it takes for one.
func (e engine) checkDefaults(w *walker, s *schema.Schema) error {
	for _, a := range s.Attrs {
		switch a := a.(type) {
		case *schema.Charset:
			if !strings.EqualFold(a.V, e.charset) {
				return refuse(w.names[s.Name], "the schema's charset is not the default of the target's database, which is %s; defaults of a database are not planned, so give the tables theirs", e.charset)
			}
		case *schema.Collation:
			if !strings.EqualFold(a.V, e.collation) {
				return refuse(w.names[s.Name], "the schema's collate is not the default of the target's database, which is %s; defaults of a database are not planned, so give the tables theirs", e.collation)
			}
		}
	}
	s.SetCharset(e.charset).SetCollation(e.collation)
	return nil
}

// located adds to each statement where what it makes is declared.
func (w *walker) located(plan *migrate.Plan) []Statement {
	out := make([]Statement, 0, len(plan.Changes))
	for _, change := range plan.Changes {
		var at hcl.Range
		switch source := change.Source.(type) {
		case *schema.AddSchema:
			at = w.names[source.S.Name]
		case *schema.AddObject:
			if enum, ok := source.O.(*schema.EnumType); ok {
				at = w.enums[enum.Schema.Name+"."+enum.T]
			}
		case *schema.AddTable:
			at = w.table(source.T)
		case *schema.ModifyTable:
			at = w.table(source.T)
		}
		out = append(out, Statement{SQL: change.Cmd, File: at.Filename, Line: at.Start.Line})
	}
	return out
}

func (w *walker) table(t *schema.Table) hcl.Range {
	if d := w.tables[t.Schema.Name+"."+t.Name]; d != nil {
		return d.at
	}
	return hcl.Range{}
}
