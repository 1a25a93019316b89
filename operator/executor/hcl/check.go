package hcl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

// longest is how much of a word from a file a message repeats.
const longest = 64

// refuse says what is wrong and where.
func refuse(at hcl.Range, format string, args ...any) error {
	return failure.New(report.CodeInvalidSchema, fmt.Sprintf("%s:%d: %s", at.Filename, at.Start.Line, fmt.Sprintf(format, args...)))
}

// shown is a word from a file, fit for a message.
func shown(word string) string {
	if len(word) > longest {
		word = strings.ToValidUTF8(word[:longest], "") + "..."
	}
	return fmt.Sprintf("%q", word)
}

// walker reads files against a grammar.
type walker struct {
	mysql bool
	// tables and enums are what the files declare, by the names of their blocks.
	tables map[string]*declared
	// names are the schemas that are declared.
	names map[string]hcl.Range
	enums map[string]hcl.Range
}

// declared is one table as a file declares it.
type declared struct {
	at      hcl.Range
	count   map[string]int // of its blocks, by type
	columns map[string]*hclsyntax.Body
}

func newWalker(mysql bool) *walker {
	return &walker{mysql: mysql, tables: map[string]*declared{}, names: map[string]hcl.Range{}, enums: map[string]hcl.Range{}}
}

// file reads one file.
func (w *walker) file(body *hclsyntax.Body) error {
	grammar := postgresqlGrammar
	if w.mysql {
		grammar = mysqlGrammar
	}
	if err := w.body(body, grammar, "a schema file"); err != nil {
		return err
	}
	for _, b := range body.Blocks {
		if err := w.declare(b); err != nil {
			return err
		}
	}
	return nil
}

// body holds a body against what it may hold.
func (w *walker) body(body *hclsyntax.Body, grammar *block, where string) error {
	for _, attribute := range inOrder(body.Attributes) {
		want, known := grammar.attributes[attribute.Name]
		if !known {
			return refuse(attribute.NameRange, "%s has no attribute %s here; %s", where, shown(attribute.Name), choice(grammar))
		}
		if err := w.value(attribute, want); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, b := range body.Blocks {
		inner, known := grammar.blocks[b.Type]
		at := b.DefRange()
		switch {
		case parametric[b.Type]:
			return refuse(at, "the block %s is not evaluated; write plain values, an artifact says the same wherever it is applied", shown(b.Type))
		case !known && elsewhere[b.Type]:
			return refuse(at, "the block %s is not supported; declare it in an .sql file beside this one", shown(b.Type))
		case !known:
			return refuse(at, "%s has no block %s here; %s", where, shown(b.Type), choice(grammar))
		case len(b.Labels) < inner.labels[0] || len(b.Labels) > inner.labels[1]:
			return refuse(at, "a block %s takes %s", shown(b.Type), labelled(inner.labels))
		case inner.once && seen[b.Type]:
			return refuse(at, "there is a second block %s; keep one", shown(b.Type))
		}
		seen[b.Type] = true
		for i, label := range b.Labels {
			if err := checkName(b.LabelRanges[i], label); err != nil {
				return err
			}
		}
		if err := w.body(b.Body, inner, "a block "+shown(b.Type)); err != nil {
			return err
		}
		if err := w.rules(b); err != nil {
			return err
		}
	}
	return nil
}

// inOrder are attributes in the order in which they stand in the file.
func inOrder(attributes hclsyntax.Attributes) []*hclsyntax.Attribute {
	return slices.SortedFunc(maps.Values(attributes), func(a, b *hclsyntax.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
}

func labelled(labels [2]int) string {
	switch labels {
	case [2]int{}:
		return "no name"
	case [2]int{1, 1}:
		return "one name"
	}
	return "its name, or its schema and its name"
}

// choice lists what may stand somewhere.
func choice(grammar *block) string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(grammar.attributes)), maps.Keys(grammar.blocks))
	slices.Sort(names)
	return "what may stand here is " + strings.Join(slices.Compact(names), ", ")
}

// checkName refuses names that Atlas does not quote, or that its references take apart.
func checkName(at hcl.Range, name string) error {
	bad := strings.IndexFunc(name, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0xfffd || strings.ContainsRune("\"'`\\.$", r)
	})
	switch {
	case name == "":
		return refuse(at, "a name is empty; give it one")
	case bad >= 0:
		return refuse(at, "a name holds a quote, a backslash, a dot, a dollar sign or a control character, which Atlas does not write as it stands; declare this object in an .sql file")
	}
	return nil
}

// declare remembers what a block of a file declares, for what is counted later.
func (w *walker) declare(b *hclsyntax.Block) error {
	name := strings.Join(b.Labels, ".")
	if len(b.Labels) == 1 && b.Type != "schema" {
		name = w.schemaOf(b) + "." + name
	}
	at := b.DefRange()
	twice := func(_ hcl.Range, found bool) error {
		if found {
			return refuse(at, "a second block declares the same %s; keep one", b.Type)
		}
		return nil
	}
	switch b.Type {
	case "schema":
		before, found := w.names[name]
		w.names[name] = at
		return twice(before, found)
	case "enum":
		before, found := w.enums[name]
		w.enums[name] = at
		return twice(before, found)
	}
	if w.tables[name] != nil {
		return twice(at, true)
	}
	t := &declared{at: at, count: map[string]int{}, columns: map[string]*hclsyntax.Body{}}
	w.tables[name] = t
	seen := map[string]bool{}
	for _, inner := range b.Body.Blocks {
		t.count[inner.Type]++
		if len(inner.Labels) != 1 {
			continue
		}
		key := inner.Type + "\x00" + inner.Labels[0]
		if seen[key] {
			return refuse(inner.DefRange(), "a second block declares the same %s; keep one", inner.Type)
		}
		seen[key] = true
		if inner.Type == "column" {
			t.columns[inner.Labels[0]] = inner.Body
		}
	}
	return nil
}

// schemaOf is the schema that a block refers to.
func (w *walker) schemaOf(b *hclsyntax.Block) string {
	attribute := b.Body.Attributes["schema"]
	if attribute == nil {
		return ""
	}
	if steps := path(attribute.Expr); len(steps) == 2 {
		return steps[1]
	}
	return ""
}

// literal returns the value of an expression that is one, without evaluating anything.
func literal(expression hclsyntax.Expression) (cty.Value, bool) {
	switch e := expression.(type) {
	case *hclsyntax.LiteralValueExpr:
		return e.Val, !e.Val.IsNull()
	case *hclsyntax.TemplateExpr:
		var out strings.Builder
		for _, part := range e.Parts {
			piece, ok := part.(*hclsyntax.LiteralValueExpr)
			if !ok || piece.Val.IsNull() || piece.Val.Type() != cty.String {
				return cty.NilVal, false
			}
			out.WriteString(piece.Val.AsString())
		}
		return cty.StringVal(out.String()), true
	case *hclsyntax.ParenthesesExpr:
		return literal(e.Expression)
	case *hclsyntax.UnaryOpExpr:
		if v, ok := literal(e.Val); ok && e.Op == hclsyntax.OpNegate && v.Type() == cty.Number {
			return v.Negate(), true
		}
	}
	return cty.NilVal, false
}

func literalText(expression hclsyntax.Expression) (string, bool) {
	v, ok := literal(expression)
	if !ok || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// rawSQL returns the text of sql("...").
func rawSQL(expression hclsyntax.Expression) (string, bool) {
	call, ok := expression.(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "sql" || len(call.Args) != 1 || call.ExpandFinal {
		return "", false
	}
	return literalText(call.Args[0])
}

// path returns the steps of a reference, or nothing.
func path(expression hclsyntax.Expression) []string {
	e, ok := expression.(*hclsyntax.ScopeTraversalExpr)
	if !ok {
		return nil
	}
	var out []string
	for _, step := range e.Traversal {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			out = append(out, s.Name)
		case hcl.TraverseAttr:
			out = append(out, s.Name)
		case hcl.TraverseIndex:
			if s.Key.Type() != cty.String {
				return nil
			}
			out = append(out, s.Key.AsString())
		default:
			return nil
		}
	}
	return out
}
