package dump

import (
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/pattern"
)

const orders = "CREATE TABLE `orders` (\n" +
	"  `id` bigint unsigned NOT NULL AUTO_INCREMENT,\n" +
	"  `user_id` bigint unsigned NOT NULL,\n" +
	"  `note` varchar(20) DEFAULT 'a,b) ENGINE=x AUTO_INCREMENT=5' COMMENT 'it''s',\n" +
	"  `total` decimal(14,2) GENERATED ALWAYS AS ((`id` * 2)) STORED,\n" +
	"  `hidden` int DEFAULT NULL /*!80023 INVISIBLE */,\n" +
	"  PRIMARY KEY (`id`),\n" +
	"  KEY `z` ((lower(`note`)),`user_id` DESC),\n" +
	"  UNIQUE KEY `a` (`note`(10)),\n" +
	"  FULLTEXT KEY `f` (`note`) /*!50100 WITH PARSER `ngram` */ ,\n" +
	"  CONSTRAINT `orders_u` FOREIGN KEY (`user_id`) REFERENCES `users` (`id`) ON DELETE CASCADE,\n" +
	"  CONSTRAINT `c` CHECK ((`id` > 0)) /*!80016 NOT ENFORCED */\n" +
	") ENGINE=InnoDB AUTO_INCREMENT=42 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='AUTO_INCREMENT=7'\n" +
	"/*!50100 PARTITION BY RANGE (`id`)\n(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB) */"

func itemNames(items []Item) []string {
	var out []string
	for _, item := range items {
		out = append(out, item.Name)
	}
	return out
}

func TestParseTable(t *testing.T) {
	table, err := ParseTable(orders)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ got, want []string }{
		"columns":      {itemNames(table.Columns), []string{"id", "user_id", "note", "total", "hidden"}},
		"keys":         {itemNames(table.Keys), []string{"PRIMARY", "z", "a", "f"}},
		"checks":       {itemNames(table.Checks), []string{"c"}},
		"foreign keys": {itemNames(table.Foreign), []string{"orders_u"}},
		"key columns":  {table.Keys[1].Columns, []string{"user_id"}},
		"own columns":  {table.Foreign[0].Columns, []string{"user_id"}},
		"parent":       {append([]string{table.Foreign[0].Parent}, table.Foreign[0].ParentColumns...), []string{"users", "id"}},
	} {
		if !slices.Equal(test.got, test.want) {
			t.Errorf("%s: %q", name, test.got)
		}
	}
	if !strings.HasSuffix(table.Checks[0].SQL, "NOT ENFORCED */") || !strings.HasSuffix(table.Columns[4].SQL, "INVISIBLE */") {
		t.Errorf("a version comment is lost: %q %q", table.Checks[0].SQL, table.Columns[4].SQL)
	}
	if !strings.HasPrefix(table.Options, "ENGINE=InnoDB") || !strings.HasPrefix(table.Partition, "/*!50100 PARTITION BY") {
		t.Errorf("options %q, partition %q", table.Options, table.Partition)
	}
	if table.Keys[3].Kind != SpecialKey || table.Keys[2].Kind != UniqueKey || table.Keys[1].Kind != PlainKey {
		t.Errorf("kinds of keys: %+v", table.Keys)
	}
}

func TestParseTableRefuses(t *testing.T) {
	for name, sql := range map[string]string{
		"nothing":                ``,
		"a view":                 "CREATE VIEW `v` AS select 1",
		"a table without an end": "CREATE TABLE `t` (`a` int",
		"an unknown definition":  "CREATE TABLE `t` (`a` int, PERIOD FOR x (a, b)) ENGINE=InnoDB",
		"an empty definition":    "CREATE TABLE `t` (`a` int,) ENGINE=InnoDB",
	} {
		if _, err := ParseTable(sql); err == nil {
			t.Errorf("%s is taken for a table", name)
		}
	}
}

func TestCanonical(t *testing.T) {
	got, err := Canonical(orders)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, "AUTO_INCREMENT=42") || !strings.Contains(got, "COMMENT='AUTO_INCREMENT=7'") || !strings.Contains(got, "AUTO_INCREMENT=5'") {
		t.Errorf("the counter and nothing else should leave: %s", got)
	}
	table, err := ParseTable(got)
	if err != nil {
		t.Fatal(err)
	}
	if names := itemNames(table.Keys); !slices.Equal(names, []string{"PRIMARY", "a", "f", "z"}) {
		t.Errorf("the keys stand as %v", names)
	}
	again, err := Canonical(got)
	if err != nil || again != got {
		t.Errorf("the canonical text has another canonical text: %v\n%s", err, again)
	}
	if len(table.Foreign) != 1 || strings.Contains(table.Bare(), "FOREIGN KEY") {
		t.Errorf("the foreign key: %v, %s", table.Foreign, table.Bare())
	}
}

func TestWithoutDefiner(t *testing.T) {
	for sql, want := range map[string][2]string{
		"CREATE DEFINER=`a`@`%` TRIGGER `t` BEFORE INSERT ON `x` FOR EACH ROW SET @a = 1":      {"CREATE TRIGGER `t` BEFORE INSERT ON `x` FOR EACH ROW SET @a = 1", "a@%"},
		"CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW `v` AS select 1": {"CREATE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW `v` AS select 1", "a@%"},
		"CREATE FUNCTION `f`() RETURNS int RETURN 'DEFINER=`a`@`b`'":                           {"CREATE FUNCTION `f`() RETURNS int RETURN 'DEFINER=`a`@`b`'", ""},
		"CREATE PROCEDURE `p`() SELECT DEFINER = a @ b":                                        {"CREATE PROCEDURE `p`() SELECT DEFINER = a @ b", ""},
		"CREATE DEFINER=`we``ird @`@`h` EVENT `e` ON SCHEDULE EVERY 1 DAY DO SELECT 1":         {"CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY DO SELECT 1", "we`ird @@h"},
		"CREATE DEFINER=\"a\"@\"%\" PROCEDURE \"p\"() SELECT 1":                                {"CREATE PROCEDURE \"p\"() SELECT 1", "a@%"},
	} {
		got, definer := WithoutDefiner(sql)
		if got != want[0] || definer != want[1] {
			t.Errorf("%s becomes %s of %s", sql, got, definer)
		}
	}
}

func TestCompare(t *testing.T) {
	a := Entry{Kind: KindTable, Name: "t", SQL: "1"}
	b := Entry{Kind: KindView, Name: "t", SQL: "1"}
	c := Entry{Kind: KindTrigger, Name: "g", SQL: "1", On: "t", Order: 1}
	moved := c
	moved.Order = 2
	recoded := c
	recoded.Settings.Charset = "latin1"
	for name, test := range map[string]struct {
		from, to []Entry
		want     int
	}{
		"equal in another order": {[]Entry{a, b, c}, []Entry{c, b, a}, 0},
		"one less":               {[]Entry{a, b}, []Entry{a}, 1},
		"one more":               {[]Entry{a}, []Entry{a, c}, 1},
		"a view for a table":     {[]Entry{a}, []Entry{b}, 2},
		"another place":          {[]Entry{c}, []Entry{moved}, 1},
		"another character set":  {[]Entry{c}, []Entry{recoded}, 1},
	} {
		if got := Compare(test.from, test.to); len(got) != test.want {
			t.Errorf("%s: %d differences", name, len(got))
		}
		if same := Digest(test.from, "x") == Digest(test.to, "x"); same != (test.want == 0) {
			t.Errorf("%s: the digests are equal: %v", name, same)
		}
	}
	if Digest([]Entry{a}, "x") == Digest([]Entry{a}, "y") {
		t.Error("a fact is not in the digest")
	}
}

func TestExclude(t *testing.T) {
	all := []Entry{{Kind: KindTable, Name: "t"}, {Kind: KindTable, Name: "u"}, {Kind: KindTrigger, Name: "t2", On: "t"}, {Kind: KindView, Name: "tv"}}
	for text, want := range map[string]int{"t": 2, "shop.t": 2, "other.t": 4, "t*": 1, "t2": 4, "*": 0, "T": 4} {
		patterns, err := pattern.Parse([]string{text}, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := Exclude(all, patterns, "shop"); len(got) != want {
			t.Errorf("%s leaves %d", text, len(got))
		}
	}
}

func TestGroup(t *testing.T) {
	group := func(sql string) string { return Entry{Kind: KindTrigger, Name: "g", On: "t", SQL: sql}.Group() }
	if group("CREATE TRIGGER `after` BEFORE INSERT ON `t` FOR EACH ROW SET @a = 1") != group("CREATE TRIGGER `x` BEFORE INSERT ON `t` FOR EACH ROW SET @b = 1") {
		t.Error("two triggers of one moment are in two groups")
	}
	if group("CREATE TRIGGER `x` BEFORE INSERT ON `t`") == group("CREATE TRIGGER `x` AFTER INSERT ON `t`") {
		t.Error("two moments are one group")
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add(orders)
	f.Add("CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB")
	f.Fuzz(func(t *testing.T, sql string) {
		got, err := Canonical(sql)
		if err != nil {
			return
		}
		again, err := Canonical(got)
		if err != nil || again != got {
			t.Fatalf("%q becomes %q and then %q: %v", sql, got, again, err)
		}
	})
}
