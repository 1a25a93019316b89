package dump

import (
	"fmt"
	"strings"
)

// Object is what the SQL of an entry says about the object it makes.
type Object struct {
	// Kind is the object's kind as DROP names it, or the phrase that COMMENT and GRANT use.
	Kind string
	Name Name
	// On is the relation that the object belongs to: the table of an index, constraint, trigger, policy, rule, default
	// or statistics object, or the table whose column a comment or grant is about.
	On Name
	// Arguments is the identifying argument list of a routine, with parentheses.
	Arguments string
}

// Relation returns the relation an entry is about: the object itself or the table it belongs to.
func (o Object) Relation() Name {
	if o.On.Object != "" {
		return o.On
	}
	return o.Name
}

// simpleKinds are the entry types whose first statement is CREATE <kind> <name>.
var simpleKinds = map[string][]string{
	"TABLE":                     {"UNLOGGED", "FOREIGN"},
	"FOREIGN TABLE":             nil,
	"VIEW":                      {"OR REPLACE", "RECURSIVE"},
	"MATERIALIZED VIEW":         {"UNLOGGED"},
	"SCHEMA":                    nil,
	"EXTENSION":                 nil,
	"DOMAIN":                    nil,
	"TYPE":                      nil,
	"COLLATION":                 nil,
	"PUBLICATION":               nil,
	"EVENT TRIGGER":             nil,
	"TEXT SEARCH CONFIGURATION": nil,
	"TEXT SEARCH DICTIONARY":    nil,
}

// Object reads the object of an entry. It says false for a type it does not know; such an entry can be compared, but
// not planned for.
func (e Entry) Object() (Object, bool) {
	if len(e.Statements) == 0 {
		return Object{}, false
	}
	sql := e.Statements[0]
	c := newCursor(sql)
	if prefixes, ok := simpleKinds[e.Type]; ok {
		return c.created(e.Type, prefixes)
	}
	switch e.Type {
	case "SEQUENCE":
		return c.sequence()
	case "SEQUENCE OWNED BY":
		return c.sequenceOwner()
	case "FUNCTION", "PROCEDURE", "AGGREGATE":
		return c.routine(e.Type, sql)
	case "DEFAULT":
		return c.columnDefault()
	case "CONSTRAINT", "FK CONSTRAINT", "CHECK CONSTRAINT":
		return c.constraint()
	case "ROW SECURITY":
		if !c.accept("ALTER", "TABLE") {
			return Object{}, false
		}
		c.optional("ONLY")
		return c.named(e.Type)
	case "PUBLICATION TABLE":
		return c.published()
	case "CAST":
		return c.cast(sql)
	case "OPERATOR":
		return operator(sql)
	case "TABLE ATTACH":
		return c.tableAttach()
	case "INDEX ATTACH":
		return c.indexAttach()
	case "TRIGGER":
		if object, ok := c.triggerState(); ok {
			return object, ok
		}
		return c.onTable(e)
	case "RULE":
		if c.accept("CREATE", "OR", "REPLACE", "VIEW") {
			return c.named(ViewRule)
		}
		return c.onTable(e)
	case "INDEX", "POLICY", "STATISTICS":
		return c.onTable(e)
	case "COMMENT":
		return c.comment(sql)
	case "ACL", "DEFAULT ACL":
		return c.grant(e.Type, sql)
	}
	return Object{}, false
}

func (c *cursor) named(kind string) (Object, bool) {
	name, ok := c.name()
	return Object{Kind: kind, Name: name}, ok
}

func (c *cursor) created(kind string, prefixes []string) (Object, bool) {
	if !c.accept("CREATE") {
		return Object{}, false
	}
	c.optional(prefixes...)
	if !c.accept(strings.Fields(kind)...) && (kind != "FOREIGN TABLE" || !c.accept("TABLE")) {
		return Object{}, false
	}
	c.optional("IF NOT EXISTS")
	return c.named(kind)
}

// sequence reads CREATE SEQUENCE, or the ALTER TABLE by which pg_dump makes an identity column.
func (c *cursor) sequence() (Object, bool) {
	if c.accept("CREATE", "SEQUENCE") || c.accept("CREATE", "UNLOGGED", "SEQUENCE") {
		return c.named("SEQUENCE")
	}
	if !c.accept("ALTER", "TABLE") {
		return Object{}, false
	}
	c.optional("ONLY")
	table, ok := c.name()
	if !ok || !c.accept("ALTER", "COLUMN") {
		return Object{}, false
	}
	column := c.parts()
	return Object{Kind: "IDENTITY", Name: Name{Object: strings.Join(column, ".")}, On: table}, len(column) == 1
}

func (c *cursor) sequenceOwner() (Object, bool) {
	if !c.accept("ALTER", "SEQUENCE") {
		return Object{}, false
	}
	name, ok := c.name()
	if !ok || !c.accept("OWNED", "BY") {
		return Object{}, false
	}
	table, ok := nameOf(c.parts())
	return Object{Kind: "SEQUENCE OWNED BY", Name: name, On: table}, ok
}

func (c *cursor) routine(kind, sql string) (Object, bool) {
	if !c.accept("CREATE") {
		return Object{}, false
	}
	c.optional("OR REPLACE")
	if !c.accept(kind) {
		return Object{}, false
	}
	name, ok := c.name()
	if !ok || !c.peek().Is("(") {
		return Object{}, false
	}
	_, items, _ := Items(sql[c.peek().Start:])
	for i, item := range items {
		items[i] = withoutDefault(item)
	}
	return Object{Kind: kind, Name: name, Arguments: "(" + strings.Join(items, ", ") + ")"}, true
}

// withoutDefault cuts the default value off a routine's argument.
func withoutDefault(argument string) string {
	depth := 0
	for _, token := range Tokens(argument) {
		switch {
		case token.Is("("):
			depth++
		case token.Is(")"):
			depth--
		case depth == 0 && (token.Is("DEFAULT") || token.Is("=")):
			return strings.TrimSpace(argument[:token.Start])
		}
	}
	return argument
}

func (c *cursor) columnDefault() (Object, bool) {
	if !c.accept("ALTER", "TABLE") && !c.accept("ALTER", "FOREIGN", "TABLE") && !c.accept("ALTER", "VIEW") {
		return Object{}, false
	}
	c.optional("ONLY")
	table, ok := c.name()
	if !ok || !c.accept("ALTER", "COLUMN") {
		return Object{}, false
	}
	column := c.parts()
	return Object{Kind: "DEFAULT", Name: Name{Object: strings.Join(column, ".")}, On: table}, len(column) == 1
}

func (c *cursor) constraint() (Object, bool) {
	kind := "TABLE"
	switch {
	case c.accept("ALTER", "TABLE"):
	case c.accept("ALTER", "FOREIGN", "TABLE"):
		kind = "FOREIGN TABLE"
	case c.accept("ALTER", "DOMAIN"):
		kind = "DOMAIN"
	default:
		return Object{}, false
	}
	c.optional("ONLY")
	on, ok := c.name()
	if !ok || !c.accept("ADD", "CONSTRAINT") {
		return Object{}, false
	}
	name, ok := c.name()
	return Object{Kind: kind, Name: name, On: on}, ok
}

// tableAttach names the partition, and the parent as what it belongs to.
func (c *cursor) tableAttach() (Object, bool) {
	if !c.accept("ALTER", "TABLE") {
		return Object{}, false
	}
	c.optional("ONLY")
	parent, ok := c.name()
	if !ok || !c.accept("ATTACH", "PARTITION") {
		return Object{}, false
	}
	child, ok := c.name()
	return Object{Kind: "TABLE ATTACH", Name: child, On: parent}, ok
}

// published names the publication, and the table as what it is about.
func (c *cursor) published() (Object, bool) {
	if !c.accept("ALTER", "PUBLICATION") {
		return Object{}, false
	}
	name, ok := c.name()
	if !ok || !c.accept("ADD", "TABLE") {
		return Object{}, false
	}
	c.optional("ONLY")
	on, ok := c.name()
	return Object{Kind: "PUBLICATION TABLE", Name: name, On: on}, ok
}

// cast has no name: it is known by its types.
func (c *cursor) cast(sql string) (Object, bool) {
	if !c.accept("CREATE", "CAST") {
		return Object{}, false
	}
	_, items, _ := Items(sql)
	return Object{Kind: "CAST", Arguments: "(" + strings.Join(items, "") + ")"}, len(items) == 1
}

func operator(sql string) (Object, bool) {
	rest, found := strings.CutPrefix(sql, "CREATE OPERATOR ")
	text, _, ok := strings.Cut(rest, " (")
	if !found || !ok {
		return Object{}, false
	}
	// The symbol of an operator holds no dot and no quote, which its schema may.
	dot := strings.LastIndex(text, ".")
	if dot < 0 {
		return Object{}, false
	}
	arguments := map[string]string{"LEFTARG": "NONE", "RIGHTARG": "NONE"}
	_, items, _ := Items("CREATE " + rest[len(text):])
	for _, item := range items {
		if key, value, ok := strings.Cut(item, " = "); ok && arguments[key] != "" {
			arguments[key] = value
		}
	}
	return Object{Kind: "OPERATOR", Name: Name{Schema: text[:dot], Object: text[dot+1:]},
		Arguments: " (" + arguments["LEFTARG"] + ", " + arguments["RIGHTARG"] + ")"}, true
}

func (c *cursor) indexAttach() (Object, bool) {
	if !c.accept("ALTER", "INDEX") {
		return Object{}, false
	}
	if _, ok := c.name(); !ok || !c.accept("ATTACH", "PARTITION") {
		return Object{}, false
	}
	return c.named("INDEX ATTACH")
}

// TriggerState is the kind of an entry that says only that the trigger of a partition fires in another way than that of
// its table.
const TriggerState = "TRIGGER STATE"

// ViewRule is the kind of an entry that gives a view its query after something that the query needs: pg_dump first makes
// the view with columns and no more.
const ViewRule = "VIEW RULE"

func (c *cursor) triggerState() (Object, bool) {
	start := c.at
	defer func() { c.at = start }()
	if !c.accept("ALTER", "TABLE") && !c.accept("ALTER", "FOREIGN", "TABLE") {
		return Object{}, false
	}
	on, ok := c.name()
	if !ok || !c.find("TRIGGER") {
		return Object{}, false
	}
	name, ok := c.name()
	return Object{Kind: TriggerState, Name: name, On: on}, ok
}

// TriggerVerb returns how a statement of pg_dump sets when a trigger fires, such as ENABLE ALWAYS.
func TriggerVerb(statement string) string {
	c := newCursor(statement)
	c.optional("ALTER TABLE", "ALTER FOREIGN TABLE", "ONLY")
	if _, ok := c.name(); !ok {
		return ""
	}
	return c.until(statement, func(t Token) bool { return t.Is("TRIGGER") })
}

// onTable reads CREATE of what belongs to one table.
func (c *cursor) onTable(e Entry) (Object, bool) {
	if !c.accept("CREATE") {
		return Object{}, false
	}
	c.optional("OR REPLACE", "UNIQUE", "CONSTRAINT")
	if !c.accept(e.Type) {
		return Object{}, false
	}
	name, ok := c.name()
	if !ok {
		return Object{}, false
	}
	marker := map[string][]string{"RULE": {"TO"}, "STATISTICS": {"FROM"}}[e.Type]
	if marker == nil {
		marker = []string{"ON"}
	}
	if !c.find(marker...) {
		return Object{}, false
	}
	c.optional("ONLY")
	on, ok := c.name()
	if e.Type == "INDEX" && name.Schema == "" {
		name.Schema = on.Schema // an index lives in the schema of its table
	}
	return Object{Kind: e.Type, Name: name, On: on}, ok
}

// comment reads what a comment is about; Kind keeps the whole phrase up to IS.
func (c *cursor) comment(sql string) (Object, bool) {
	if !c.accept("COMMENT", "ON") {
		return Object{}, false
	}
	at := c.at
	phrase := c.until(sql, func(t Token) bool { return t.Is("IS") })
	c.at = at
	object := Object{Kind: phrase}
	switch {
	case c.accept("COLUMN"):
		parts := c.parts()
		if len(parts) > 1 {
			object.On, _ = nameOf(parts[:len(parts)-1])
			object.Name = Name{Object: parts[len(parts)-1]}
		}
		return object, len(parts) > 1
	case c.accept("CONSTRAINT"), c.accept("TRIGGER"), c.accept("POLICY"), c.accept("RULE"):
		object.Name, _ = c.name()
		if !c.accept("ON") {
			return Object{}, false
		}
		c.optional("DOMAIN")
		on, ok := c.name()
		object.On = on
		return object, ok
	}
	c.optional("MATERIALIZED", "FOREIGN", "TEXT SEARCH", "EVENT")
	c.at++ // the kind's last word
	name, ok := c.name()
	object.Name = name
	return object, ok
}

// grant reads the object of a privilege; Kind keeps the phrase between ON and TO or FROM.
func (c *cursor) grant(kind, sql string) (Object, bool) {
	if kind == "DEFAULT ACL" {
		return Object{Kind: kind}, true
	}
	if !c.find("ON") {
		return Object{}, false
	}
	at := c.at
	phrase := c.until(sql, func(t Token) bool { return t.Is("TO") || t.Is("FROM") })
	c.at = at
	for _, word := range []string{"FOREIGN", "SERVER", "DATA", "WRAPPER", "LARGE", "OBJECT"} {
		c.accept(word)
	}
	for _, word := range []string{"TABLE", "SEQUENCE", "FUNCTION", "PROCEDURE", "SCHEMA", "TYPE", "DOMAIN", "LANGUAGE", "ROUTINE"} {
		if c.accept(word) {
			break
		}
	}
	name, ok := c.name()
	return Object{Kind: phrase, Name: name}, ok
}

// DroppedTable returns the table that a statement drops, if it drops one.
func DroppedTable(statement string) (Name, bool) {
	c := newCursor(statement)
	if !c.accept("DROP", "TABLE") {
		return Name{}, false
	}
	c.optional("IF EXISTS")
	return c.name()
}

// Drop returns the statements that take an entry away. It never cascades: what depends on the object must go first,
// so that the plan says so. It fails for a type it does not know.
func (e Entry) Drop() ([]string, error) {
	object, ok := e.Object()
	if !ok {
		return nil, fmt.Errorf("no statement is known that drops an object of type %s", e.Type)
	}
	switch e.Type {
	case "COMMENT":
		return []string{"COMMENT ON " + object.Kind + " IS NULL"}, nil
	case "ACL", "DEFAULT ACL":
		return reverseGrants(e.Statements)
	case "CONSTRAINT", "FK CONSTRAINT", "CHECK CONSTRAINT":
		return one("ALTER %s %s DROP CONSTRAINT %s", object.Kind, object.On.SQL(), object.Name.SQL()), nil
	case "TRIGGER", "POLICY", "RULE":
		if object.Kind == ViewRule {
			return nil, nil // it leaves with its view
		}
		return one("DROP %s %s ON %s", e.Type, object.Name.SQL(), object.On.SQL()), nil
	case "DEFAULT":
		return one("ALTER TABLE %s ALTER COLUMN %s DROP DEFAULT", object.On.SQL(), object.Name.SQL()), nil
	case "ROW SECURITY":
		return one("ALTER TABLE %s DISABLE ROW LEVEL SECURITY", object.Name.SQL()), nil
	case "SEQUENCE OWNED BY":
		return one("ALTER SEQUENCE %s OWNED BY NONE", object.Name.SQL()), nil
	case "PUBLICATION TABLE":
		return one("ALTER PUBLICATION %s DROP TABLE ONLY %s", object.Name.SQL(), object.On.SQL()), nil
	case "FUNCTION", "PROCEDURE", "AGGREGATE", "CAST", "OPERATOR":
		return one("DROP %s %s%s", e.Type, object.Name.SQL(), object.Arguments), nil
	case "TABLE ATTACH":
		return one("ALTER TABLE %s DETACH PARTITION %s", object.On.SQL(), object.Name.SQL()), nil
	case "SEQUENCE":
		if object.Kind == "IDENTITY" {
			return one("ALTER TABLE %s ALTER COLUMN %s DROP IDENTITY", object.On.SQL(), object.Name.SQL()), nil
		}
	case "INDEX ATTACH":
		return nil, fmt.Errorf("an attached index cannot be detached")
	}
	return one("DROP %s %s", e.Type, object.Name.SQL()), nil
}

func one(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }

// reverseGrants turns grants into revocations and the other way round, last first.
func reverseGrants(statements []string) ([]string, error) {
	var out []string
	for i := len(statements) - 1; i >= 0; i-- {
		reversed, err := reverseGrant(statements[i])
		if err != nil {
			return nil, err
		}
		out = append(out, reversed)
	}
	return out, nil
}

func reverseGrant(statement string) (string, error) {
	tokens := Tokens(statement)
	verb, link, end := -1, -1, len(statement)
	grant := false
	for i, token := range tokens {
		switch {
		case verb < 0 && (token.Is("GRANT") || token.Is("REVOKE")):
			verb, grant = i, token.Is("GRANT")
		case verb >= 0 && token.Is("ON"):
			link = -1 // TO or FROM comes behind the object
		case verb >= 0 && link < 0 && (grant && token.Is("TO") || !grant && token.Is("FROM")):
			link = i
		case link >= 0 && token.Is("WITH"):
			end = token.Start
		}
	}
	if verb < 0 || link < 0 {
		return "", fmt.Errorf("a statement about privileges has an unknown form")
	}
	v, l := tokens[verb], tokens[link]
	newVerb, newLink := "GRANT", "TO"
	if grant {
		newVerb, newLink = "REVOKE", "FROM"
	}
	return strings.TrimSpace(statement[:v.Start] + newVerb + statement[v.End:l.Start] + newLink + statement[l.End:end]), nil
}
