package planner

import (
	"slices"
	"testing"

	"ptah.run/ptah/operator/executor/mysql/dump"
)

func parsed(t *testing.T, definitions, options string) *dump.Table {
	t.Helper()
	table, err := dump.ParseTable("CREATE TABLE `t` (" + definitions + ") " + options)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestAlterByEntriesAndByLibrary(t *testing.T) {
	const plain = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
	type side struct{ definitions, options string }
	for name, test := range map[string]struct {
		from, to side
		entries  []string
		library  []string // nil where it is not asked
	}{
		"a column less": {side{"`a` int DEFAULT NULL, `b` int DEFAULT NULL", plain}, side{"`a` int DEFAULT NULL", plain},
			[]string{"ALTER TABLE `t` DROP COLUMN `b`"}, []string{"ALTER TABLE `t` DROP COLUMN `b`"}},
		"a column in between": {side{"`a` int DEFAULT NULL, `c` int DEFAULT NULL", plain}, side{"`a` int DEFAULT NULL, `b` int DEFAULT NULL, `c` int DEFAULT NULL", plain},
			[]string{"ALTER TABLE `t` ADD COLUMN `b` int DEFAULT NULL AFTER `a`"}, nil},
		"two columns that change places": {side{"`a` int DEFAULT NULL, `b` int DEFAULT NULL", plain}, side{"`b` int DEFAULT NULL, `a` int DEFAULT NULL", plain},
			[]string{"ALTER TABLE `t` MODIFY COLUMN `b` int DEFAULT NULL FIRST"}, nil},
		"a virtual column that is stored": {side{"`a` int DEFAULT NULL, `b` int GENERATED ALWAYS AS (`a`) VIRTUAL", plain}, side{"`a` int DEFAULT NULL, `b` int GENERATED ALWAYS AS (`a`) STORED", plain},
			[]string{"ALTER TABLE `t` DROP COLUMN `b`, ADD COLUMN `b` int GENERATED ALWAYS AS (`a`) STORED AFTER `a`"}, nil},
		"another key": {side{"`a` int DEFAULT NULL, KEY `k` (`a`)", plain}, side{"`a` int DEFAULT NULL, UNIQUE KEY `k` (`a`)", plain},
			[]string{"ALTER TABLE `t` DROP KEY `k`, ADD UNIQUE KEY `k` (`a`)"}, nil},
		"a comment that goes": {side{"`a` int DEFAULT NULL", plain + " COMMENT='x'"}, side{"`a` int DEFAULT NULL", plain},
			[]string{"ALTER TABLE `t` COMMENT = ''"}, nil},
		"another character set": {side{"`a` varchar(9) DEFAULT NULL", "ENGINE=InnoDB DEFAULT CHARSET=latin1"}, side{"`a` varchar(9) DEFAULT NULL", plain},
			[]string{"ALTER TABLE `t` MODIFY COLUMN `a` varchar(9) DEFAULT NULL, CHARSET = utf8mb4 COLLATE = utf8mb4_0900_ai_ci"}, nil},
		"no more partitions": {side{"`a` int DEFAULT NULL", plain + " /*!50100 PARTITION BY HASH (`a`) PARTITIONS 4 */"}, side{"`a` int DEFAULT NULL", plain},
			[]string{"ALTER TABLE `t` REMOVE PARTITIONING"}, nil},
	} {
		from, to := parsed(t, test.from.definitions, test.from.options), parsed(t, test.to.definitions, test.to.options)
		got, err := entryAlter(from, to)
		if err != nil || !slices.Equal(got, test.entries) {
			t.Errorf("%s: by entries %q, %v", name, got, err)
		}
		got, err = libraryAlter(from, to)
		if err != nil || len(got) == 0 || test.library != nil && !slices.Equal(got, test.library) {
			t.Errorf("%s: by library %q, %v", name, got, err)
		}
	}
}

func TestAnOptionWithoutAKnownDefaultIsNotTakenAway(t *testing.T) {
	if got, err := entryAlter(parsed(t, "`a` int", "ENGINE=InnoDB UNION=x"), parsed(t, "`a` int", "ENGINE=InnoDB")); err == nil {
		t.Errorf("planned %q", got)
	}
	if got, err := entryAlter(parsed(t, "`a` int", "ENGINE=InnoDB strange"), parsed(t, "`a` int", "ENGINE=InnoDB")); err == nil {
		t.Errorf("planned %q", got)
	}
}

func TestForeignKeysInTheWayLeaveAndComeBack(t *testing.T) {
	entry := func(name, sql string) dump.Entry { return dump.Entry{Kind: dump.KindTable, Name: name, SQL: sql} }
	child := entry("c", "CREATE TABLE `c` (`p` int DEFAULT NULL, KEY `f` (`p`), CONSTRAINT `f` FOREIGN KEY (`p`) REFERENCES `p` (`id`)) ENGINE=InnoDB")
	parent := func(kind string) dump.Entry {
		return entry("p", "CREATE TABLE `p` (`id` "+kind+" NOT NULL, `n` int, PRIMARY KEY (`id`)) ENGINE=InnoDB")
	}
	wide := entry("p", "CREATE TABLE `p` (`id` int NOT NULL, `n` bigint, PRIMARY KEY (`id`)) ENGINE=InnoDB")
	gone := entry("c", "CREATE TABLE `c` (`p` int DEFAULT NULL) ENGINE=InnoDB")
	for name, test := range map[string]struct {
		have, want  []dump.Entry
		drops, adds int
	}{
		"nothing changes":              {[]dump.Entry{child, parent("int")}, []dump.Entry{child, parent("int")}, 0, 0},
		"the parent's column changes":  {[]dump.Entry{child, parent("int")}, []dump.Entry{child, parent("bigint")}, 1, 1},
		"another column changes":       {[]dump.Entry{child, parent("int")}, []dump.Entry{child, wide}, 0, 0},
		"the key goes":                 {[]dump.Entry{child, parent("int")}, []dump.Entry{gone, parent("int")}, 1, 0},
		"the key comes":                {[]dump.Entry{gone, parent("int")}, []dump.Entry{child, parent("int")}, 0, 1},
		"the child goes":               {[]dump.Entry{child, parent("int")}, []dump.Entry{parent("int")}, 1, 0},
		"the parent is made elsewhere": {[]dump.Entry{child, parent("int")}, []dump.Entry{child}, 1, 1},
	} {
		a := attempt{have: test.have, want: test.want}
		var err error
		if a.before, err = tables(a.have); err != nil {
			t.Fatal(err)
		}
		if a.after, err = tables(a.want); err != nil {
			t.Fatal(err)
		}
		drops, adds := a.foreignKeys()
		if len(drops) != test.drops || len(adds) != test.adds {
			t.Errorf("%s: drops %q, adds %q", name, drops, adds)
		}
	}
}

func TestKeysThatTheServerMayHaveMadeArePinned(t *testing.T) {
	entry := func(definitions string) []dump.Entry {
		return []dump.Entry{{Kind: dump.KindTable, Name: "c", SQL: "CREATE TABLE `c` (`a` int, `b` int" + definitions + ") ENGINE=InnoDB"}}
	}
	const f = ", CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`id`)"
	const pin = "ALTER TABLE `c` DROP KEY `a`, ADD KEY `a` (`a`)"
	for name, test := range map[string]struct {
		have, want []dump.Entry
		adds       []addition
		pins       []string
	}{
		"nothing is added":               {entry(", KEY `a` (`a`)" + f), entry(", KEY `a` (`a`)" + f), nil, nil},
		"a foreign key is added":         {entry(", KEY `a` (`a`)" + f), entry(", KEY `a` (`a`)" + f), []addition{{"c", "x"}}, []string{pin}},
		"one is added to another":        {entry(", KEY `a` (`a`)" + f), entry(", KEY `a` (`a`)" + f), []addition{{"d", "x"}}, nil},
		"a key is added":                 {entry(", KEY `a` (`a`)" + f), entry(", KEY `a` (`a`), KEY `k` (`a`,`b`)" + f), nil, []string{pin}},
		"the key goes":                   {entry(", KEY `a` (`a`)" + f), entry(", KEY `k` (`a`,`b`)" + f), nil, nil},
		"a key of more columns":          {entry(", KEY `a` (`a`,`b`)" + f), entry(", KEY `a` (`a`,`b`)" + f), []addition{{"c", "x"}}, nil},
		"a key without a foreign one":    {entry(", KEY `a` (`a`)"), entry(", KEY `a` (`a`)" + f), []addition{{"c", "x"}}, []string{pin}},
		"a key of no foreign key at all": {entry(", KEY `a` (`a`)"), entry(", KEY `a` (`a`), KEY `k` (`a`,`b`)"), nil, nil},
	} {
		a := attempt{have: test.have, want: test.want}
		var err error
		if a.before, err = tables(a.have); err != nil {
			t.Fatal(err)
		}
		if a.after, err = tables(a.want); err != nil {
			t.Fatal(err)
		}
		if got := a.pins(test.adds); !slices.Equal(got, test.pins) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestTriggersThatAreMadeAnew(t *testing.T) {
	trigger := func(name string, order int, body string) dump.Entry {
		return dump.Entry{Kind: dump.KindTrigger, Name: name, On: "t", Order: order, SQL: "CREATE TRIGGER `" + name + "` BEFORE INSERT ON `t` FOR EACH ROW " + body}
	}
	a, b, c := trigger("a", 1, "x"), trigger("b", 2, "x"), trigger("c", 3, "x")
	for name, test := range map[string]struct {
		have, want []dump.Entry
		rebuilt    []string
	}{
		"nothing":            {[]dump.Entry{a, b}, []dump.Entry{a, b}, nil},
		"the first goes":     {[]dump.Entry{a, b}, []dump.Entry{trigger("b", 1, "x")}, []string{"a"}},
		"one comes behind":   {[]dump.Entry{a, b}, []dump.Entry{a, b, c}, nil},
		"one comes in front": {[]dump.Entry{a}, []dump.Entry{trigger("b", 1, "x"), trigger("a", 2, "x")}, []string{"a", "b"}},
		"the last changes":   {[]dump.Entry{a, b}, []dump.Entry{a, trigger("b", 2, "y")}, []string{"b"}},
		"the first changes":  {[]dump.Entry{a, b}, []dump.Entry{trigger("a", 1, "y"), b}, []string{"a", "b"}},
		"they change places": {[]dump.Entry{a, b}, []dump.Entry{trigger("b", 1, "x"), trigger("a", 2, "x")}, []string{"a", "b"}},
	} {
		at := attempt{have: test.have, want: test.want}
		got := at.rebuiltTriggers()
		var names []string
		for name := range got {
			names = append(names, name)
		}
		slices.Sort(names)
		if !slices.Equal(names, test.rebuilt) {
			t.Errorf("%s: %v", name, names)
		}
	}
}

func TestSettingsAreSetWhereTheyDiffer(t *testing.T) {
	var said []string
	s := sessionSettings{run: func(sql string) error { said = append(said, sql); return nil }}
	own := base
	own.TimeZone = ""
	other := own
	other.SQLMode = "ANSI"
	for _, e := range []dump.Entry{{Kind: dump.KindTable}, {Kind: dump.KindFunction, Settings: own}, {Kind: dump.KindFunction, Settings: other},
		{Kind: dump.KindFunction, Settings: other}, {Kind: dump.KindTable}} {
		if err := s.use(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) != 2 {
		t.Errorf("said %q", said)
	}
}

func TestAForeignKeyStaysWhereATableChangesOnlyBesideItsColumns(t *testing.T) {
	const plain = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
	for options, want := range map[string]bool{
		plain + " COMMENT='x'":                        true,
		plain + " STATS_PERSISTENT=1":                 true,
		plain + " ROW_FORMAT=COMPRESSED":              false,
		"ENGINE=InnoDB DEFAULT CHARSET=latin1":        false,
		"ENGINE=MyISAM DEFAULT CHARSET=utf8mb4":       false,
		plain + " COMMENT='x' in a form never seen":   false,
		plain + " COMMENT='COLLATE=utf8mb4_bin only'": true,
	} {
		if got := sameStorage(plain, options); got != want {
			t.Errorf("%s: %t", options, got)
		}
	}
}

func TestAnEventThatEndsIsNoState(t *testing.T) {
	for sql, want := range map[string]bool{
		"CREATE EVENT `e` ON SCHEDULE AT '2040-01-01 00:00:00' DO SELECT 1":                                            true,
		"CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY STARTS '2000-01-01 00:00:00' ENDS '2001-01-01 00:00:00' DO SELECT 1": true,
		"CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY STARTS '2000-01-01 00:00:00' ON COMPLETION PRESERVE DO SELECT 1":     false,
		"CREATE EVENT `ends` ON SCHEDULE EVERY 1 DAY COMMENT 'ENDS AT 5' DO SELECT ends AT":                            false,
	} {
		if got := ends(sql); got != want {
			t.Errorf("%s: %t", sql, got)
		}
	}
}
