package hcl

import (
	"ariga.io/atlas/sql/postgres"
	"ariga.io/atlas/sql/schema"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// complete counts what Atlas made of the files against what they declare, and compares the types of columns, because
// Atlas leaves out in silence what it cannot follow.
func (e engine) complete(w *walker, realm *schema.Realm) error {
	made := map[string]*schema.Table{}
	enums := 0
	for _, s := range realm.Schemas {
		for _, t := range s.Tables {
			made[s.Name+"."+t.Name] = t
		}
		enums += len(s.Objects)
	}
	for name, d := range w.tables {
		t := made[name]
		if t == nil {
			return refuse(d.at, "Atlas does not carry this table into SQL; declare it in an .sql file")
		}
		checks := 0
		for _, a := range t.Attrs {
			if _, ok := a.(*schema.Check); ok {
				checks++
			}
		}
		keys := 0
		if t.PrimaryKey != nil && len(t.PrimaryKey.Parts) > 0 {
			keys = 1
		}
		if len(t.Columns) != d.count["column"] || len(t.Indexes) != d.count["index"]+d.count["unique"] || keys != d.count["primary_key"] ||
			len(t.ForeignKeys) != d.count["foreign_key"] || checks != d.count["check"] || len(t.Columns) == 0 {
			return refuse(d.at, "Atlas does not carry all of this table into SQL; declare it in an .sql file")
		}
		for _, c := range t.Columns {
			if err := e.column(w, t, c, d.columns[c.Name]); err != nil {
				return err
			}
		}
	}
	if len(made) != len(w.tables) || enums != len(w.enums) || len(realm.Schemas) != len(w.names) {
		for _, at := range w.names {
			return refuse(at, "Atlas makes of the files something else than they declare; declare the schema in .sql files")
		}
	}
	return nil
}

// column compares a column with its declaration.
func (e engine) column(w *walker, t *schema.Table, c *schema.Column, body *hclsyntax.Body) error {
	d := w.tables[t.Schema.Name+"."+t.Name]
	if body == nil {
		return refuse(d.at, "Atlas renames a column of this table; declare it in an .sql file")
	}
	at := body.SrcRange
	attribute := body.Attributes["type"]
	if attribute == nil {
		return refuse(at, "a column has no type; give it one")
	}
	want, err := w.declaredType(attribute, attribute.Expr)
	if err != nil {
		return err
	}
	if want.enum != "" {
		if enum, ok := c.Type.Type.(*schema.EnumType); !ok || enum.T != want.enum {
			return refuse(attribute.NameRange, "the enum of the column is not declared")
		}
	} else if err := e.sameType(attribute, c, body, want.sql); err != nil {
		return err
	}
	identity, computed := false, false
	for _, a := range c.Attrs {
		switch a.(type) {
		case *postgres.Identity:
			identity = true
		case *schema.GeneratedExpr:
			computed = true
		}
	}
	_, as := body.Attributes["as"]
	wantIdentity := false
	for _, b := range body.Blocks {
		as = as || b.Type == "as"
		wantIdentity = wantIdentity || b.Type == "identity"
	}
	if identity != wantIdentity || computed != as {
		return refuse(at, "Atlas does not carry all of this column into SQL; declare its table in an .sql file")
	}
	return nil
}

// sameType refuses a type of which Atlas would write less, or something else.
func (e engine) sameType(attribute *hclsyntax.Attribute, c *schema.Column, body *hclsyntax.Body, want string) error {
	if unsigned := body.Attributes["unsigned"]; unsigned != nil {
		if v, ok := literal(unsigned.Expr); ok && v.True() {
			want += " unsigned"
		}
	}
	got, err := e.format(c.Type.Type)
	if err != nil || !sameType(e.mysql, got, want) {
		return refuse(attribute.NameRange, "Atlas does not write this type as it stands; declare the table in an .sql file")
	}
	return nil
}
