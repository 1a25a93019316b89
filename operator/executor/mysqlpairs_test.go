package executor_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMySQLPairs plans between random schemas. What comes of it is right or refused, never anything else; a finding becomes
// a case. PTAH_TEST_PAIRS says how many pairs and PTAH_TEST_SEED where they start, for a longer search.
func TestMySQLPairs(t *testing.T) {
	server := mysqlServer(t)
	pairs, first := number(t, "PTAH_TEST_PAIRS", 12), uint64(number(t, "PTAH_TEST_SEED", 1))
	got := map[string]verdict{}
	started := time.Now()
	for i := range pairs {
		seed := first + uint64(i)
		r := rand.New(rand.NewPCG(seed, 97)) //nolint:gosec // the same schemas from the same seed
		old, want := randomSchema(r), randomSchema(r)
		c := mysqlCase{server: server, name: fmt.Sprintf("pair%d", i)}
		end, why := c.run(t.Context(), old, want, false)
		got[strconv.FormatUint(seed, 10)] = end
		t.Logf("seed %d is %s: %s", seed, end, why)
		if end != right && end != refused {
			t.Errorf("seed %d was to go from\n%s\nto\n%s", seed, old, want)
		}
	}
	table(t, "MySQL pairs", got, time.Since(started))
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q and must be a number from 1", variable, text)
	}
	return n
}

func oneOf(r *rand.Rand, choices ...string) string { return choices[r.IntN(len(choices))] }

// may returns a text with a probability in percent, and nothing otherwise.
func may(r *rand.Rand, percent int, text string) string {
	if r.IntN(100) < percent {
		return text
	}
	return ""
}

// randomSchema makes a schema of a few tables, all of whose names come from a small set, so that two schemas have much in
// common.
func randomSchema(r *rand.Rand) string {
	const tables = 4
	var ids, parents [tables]string
	var partitioned [tables]bool
	for i := range tables {
		if r.IntN(100) < 85 {
			ids[i] = oneOf(r, "int", "int", "bigint", "int unsigned")
		}
		partitioned[i] = r.IntN(100) < 15
	}
	for i := range tables {
		if j := r.IntN(tables); ids[i] != "" && ids[j] != "" && !partitioned[i] && !partitioned[j] && r.IntN(100) < 60 {
			parents[i] = strconv.Itoa(j)
		}
	}
	sql, late := "", ""
	for i, id := range ids {
		if id == "" {
			continue
		}
		sql += randomTable(r, i, id, partitioned[i])
		if j, err := strconv.Atoi(parents[i]); err == nil {
			late += fmt.Sprintf("ALTER TABLE t%d ADD COLUMN parent %s, ADD CONSTRAINT f%d FOREIGN KEY (parent) REFERENCES t%d (id)%s;\n",
				i, ids[j], i, j, oneOf(r, "", " ON DELETE CASCADE", " ON DELETE SET NULL ON UPDATE CASCADE"))
		}
		late += randomPrograms(r, i)
	}
	return sql + late
}

// types of columns, each with defaults that fit it.
var randomTypes = []struct {
	name     string
	defaults []string
	text     bool // may have a collation
	plain    bool // may be in a key as it is
}{
	{"int", []string{"0", "7"}, false, true}, {"bigint unsigned", []string{"0"}, false, true}, {"tinyint(1)", []string{"1"}, false, true},
	{"varchar(10)", []string{"''", "'it''s'"}, true, true}, {"varchar(20)", []string{"'x'", `'a\\b'`}, true, true}, {"char(5)", []string{"'-'"}, true, true},
	{"text", []string{"(concat('a', 'b'))"}, true, false}, {"decimal(8,2)", []string{"0.00", "1.50"}, false, true},
	{"decimal(10,3)", []string{"2.000"}, false, true}, {"datetime", []string{"CURRENT_TIMESTAMP", "'2001-02-03 04:05:06'"}, false, true},
	{"datetime(3)", []string{"CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"}, false, true},
	{"timestamp", []string{"CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"}, false, true}, {"json", []string{"(json_array())"}, false, false},
	{"enum('a','b')", []string{"'a'"}, true, true}, {"enum('a','b','c')", []string{"'c'"}, true, true}, {"enum('b','a')", []string{"'b'"}, true, true},
	{"set('x','y')", []string{"'x,y'"}, true, true}, {"double", []string{"0", "1e10"}, false, true}, {"varbinary(16)", []string{"x'00ff'"}, false, true},
	{"bit(4)", []string{"b'101'"}, false, true}, {"date", []string{"'2000-01-01'"}, false, true}, {"year", []string{"2024"}, false, true},
}

func randomTable(r *rand.Rand, i int, id string, partitioned bool) string {
	lines := []string{"id " + id + " NOT NULL" + may(r, 40, " AUTO_INCREMENT")}
	var keyable []string
	counting := strings.Contains(lines[0], "AUTO_INCREMENT")
	for _, c := range r.Perm(6)[:r.IntN(6)] {
		name := fmt.Sprintf("c%d", c)
		if r.IntN(100) < 15 && !counting {
			lines = append(lines, fmt.Sprintf("%s bigint GENERATED ALWAYS AS (id + %d) %s", name, r.IntN(2), oneOf(r, "VIRTUAL", "STORED")))
			continue
		}
		kind := randomTypes[r.IntN(len(randomTypes))]
		line := name + " " + kind.name
		if kind.text {
			line += oneOf(r, "", "", "", " COLLATE utf8mb4_bin", " CHARACTER SET latin1")
		}
		line += may(r, 40, " NOT NULL") + may(r, 50, " DEFAULT "+kind.defaults[r.IntN(len(kind.defaults))])
		lines = append(lines, line+may(r, 10, " INVISIBLE")+may(r, 15, " COMMENT "+oneOf(r, "'a'", "'b ''c'' \\\\'")))
		if kind.plain {
			keyable = append(keyable, name)
		}
	}
	lines = append(lines, "PRIMARY KEY (id)")
	for k, name := range keyable {
		lines = append(lines, slices.DeleteFunc([]string{
			may(r, 25, fmt.Sprintf("KEY k%d (%s%s)%s", k, name, may(r, 30, " DESC"), may(r, 15, " INVISIBLE"))),
			may(r, 10, fmt.Sprintf("UNIQUE KEY u%d (id, %s)", k, name)),
			may(r, 8, fmt.Sprintf("KEY e%d ((coalesce(%s, 0)))", k, name)),
		}, func(line string) bool { return line == "" })...)
	}
	if !counting {
		lines = append(lines, slices.DeleteFunc([]string{
			may(r, 30, fmt.Sprintf("CONSTRAINT %s CHECK (id > %d)%s", oneOf(r, fmt.Sprintf("k%d", i), fmt.Sprintf("m%d", i)), r.IntN(3), may(r, 20, " NOT ENFORCED"))),
		}, func(line string) bool { return line == "" })...)
	}
	sql := fmt.Sprintf("CREATE TABLE t%d (%s)", i, strings.Join(lines, ", ")) + may(r, 15, " COMMENT='c'") + may(r, 10, " ROW_FORMAT=COMPRESSED") +
		may(r, 10, " CHARSET=latin1") + may(r, 10, " STATS_PERSISTENT=1")
	if partitioned {
		sql += oneOf(r, " PARTITION BY HASH (id) PARTITIONS 2", " PARTITION BY HASH (id) PARTITIONS 4",
			" PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (20))",
			" PARTITION BY RANGE (id) (PARTITION b VALUES LESS THAN (20), PARTITION c VALUES LESS THAN MAXVALUE)")
	}
	return sql + ";\n"
}

// randomPrograms makes views, triggers, routines and events that use a table.
func randomPrograms(r *rand.Rand, i int) string {
	sql := may(r, 30, fmt.Sprintf("CREATE %sVIEW v%d AS SELECT id%s FROM t%d;\n", oneOf(r, "", "SQL SECURITY INVOKER ", "ALGORITHM=MERGE "), i, oneOf(r, "", " + 1 AS b"), i)) +
		may(r, 10, fmt.Sprintf("CREATE VIEW w%d AS SELECT count(*) AS n FROM t%d;\n", i, i)) +
		may(r, 20, fmt.Sprintf("CREATE PROCEDURE p%d()%s SELECT %d;\n", i, oneOf(r, "", " SQL SECURITY INVOKER", " COMMENT 'c'"), r.IntN(2))) +
		may(r, 20, fmt.Sprintf("CREATE FUNCTION f%d(x int) RETURNS int %s RETURN x + %d;\n", i, oneOf(r, "DETERMINISTIC", "NO SQL"), r.IntN(2))) +
		may(r, 15, fmt.Sprintf("CREATE EVENT e%d ON SCHEDULE EVERY %d DAY%s DO DELETE FROM t%d;\n", i, 1+r.IntN(2), may(r, 30, " DISABLE"), i))
	for _, g := range r.Perm(3)[:r.IntN(3)] {
		sql += fmt.Sprintf("CREATE TRIGGER g%d%d BEFORE INSERT ON t%d FOR EACH ROW SET NEW.id = NEW.id + %d;\n", i, g, i, r.IntN(2))
	}
	return sql
}
