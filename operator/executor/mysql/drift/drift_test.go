package drift

import (
	"reflect"
	"testing"

	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/plan/report"
)

func table(sql string) dump.Entry { return dump.Entry{Kind: dump.KindTable, Name: "t", SQL: sql} }

func TestFindings(t *testing.T) {
	const base = "CREATE TABLE `t` (\n  `a` int DEFAULT NULL,\n  `b` int DEFAULT NULL,\n  UNIQUE KEY `u` (`a`),\n  CONSTRAINT `c` CHECK ((`a` > 1))\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
	for name, test := range map[string]struct {
		from, to []dump.Entry
		want     []report.Finding
	}{
		"nothing":    {[]dump.Entry{table(base)}, []dump.Entry{table(base)}, []report.Finding{}},
		"new table":  {nil, []dump.Entry{table(base)}, []report.Finding{{Category: "tables_added", Count: 1, Severity: safe}}},
		"lost table": {[]dump.Entry{table(base)}, nil, []report.Finding{{Category: "tables_removed", Count: 1, Severity: destructive}}},
		"a column less and an index more": {[]dump.Entry{table(base)},
			[]dump.Entry{table("CREATE TABLE `t` (\n  `a` int DEFAULT NULL,\n  UNIQUE KEY `u` (`a`),\n  KEY `k` (`a`),\n  CONSTRAINT `c` CHECK ((`a` > 1))\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")},
			[]report.Finding{{Category: "columns_removed", Count: 1, Severity: destructive}, {Category: "indexes_added", Count: 1, Severity: warning}}},
		"another order of columns": {[]dump.Entry{table("CREATE TABLE `t` (\n  `a` int,\n  `b` int\n) ENGINE=InnoDB")},
			[]dump.Entry{table("CREATE TABLE `t` (\n  `b` int,\n  `a` int\n) ENGINE=InnoDB")},
			[]report.Finding{{Category: "columns_modified", Count: 1, Severity: warning}}},
		"a lost unique key": {[]dump.Entry{table("CREATE TABLE `t` (\n  `a` int,\n  UNIQUE KEY `u` (`a`)\n) ENGINE=InnoDB")},
			[]dump.Entry{table("CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB")},
			[]report.Finding{{Category: "unique_protections_removed", Count: 1, Severity: destructive}, {Category: "indexes_removed", Count: 1, Severity: warning}}},
		"another primary key": {[]dump.Entry{table("CREATE TABLE `t` (\n  `a` int,\n  `b` int,\n  PRIMARY KEY (`a`)\n) ENGINE=InnoDB")},
			[]dump.Entry{table("CREATE TABLE `t` (\n  `a` int,\n  `b` int,\n  PRIMARY KEY (`a`,`b`)\n) ENGINE=InnoDB")},
			[]report.Finding{{Category: "table_constraints_removed", Count: 1, Severity: destructive}, {Category: "unique_protections_removed", Count: 1, Severity: destructive}, {Category: "table_constraints_added", Count: 1, Severity: warning}}},
		"an enum label more": {[]dump.Entry{table("CREATE TABLE `t` (\n  `a` enum('x','y')\n) ENGINE=InnoDB")},
			[]dump.Entry{table("CREATE TABLE `t` (\n  `a` enum('x','y','z')\n) ENGINE=InnoDB")},
			[]report.Finding{{Category: "columns_modified", Count: 1, Severity: warning}, {Category: "enum_values_added", Count: 1, Severity: warning}}},
		"another order of enum labels": {[]dump.Entry{table("CREATE TABLE `t` (\n  `a` enum('x','y')\n) ENGINE=InnoDB")},
			[]dump.Entry{table("CREATE TABLE `t` (\n  `a` enum('y','x')\n) ENGINE=InnoDB")},
			[]report.Finding{{Category: "enum_values_removed", Count: 1, Severity: destructive}, {Category: "columns_modified", Count: 1, Severity: warning}}},
		"another number of dimensions": {[]dump.Entry{table("CREATE TABLE `t` (\n  `a` vector(3) DEFAULT NULL\n) ENGINE=InnoDB")},
			[]dump.Entry{table("CREATE TABLE `t` (\n  `a` vector(4) DEFAULT NULL\n) ENGINE=InnoDB")},
			[]report.Finding{{Category: "vector_dimension_changed", Count: 1, Severity: destructive}, {Category: "columns_modified", Count: 1, Severity: warning}}},
		"another procedure body": {[]dump.Entry{{Kind: dump.KindProcedure, Name: "p", SQL: "CREATE PROCEDURE `p`() SELECT 1"}},
			[]dump.Entry{{Kind: dump.KindProcedure, Name: "p", SQL: "CREATE PROCEDURE `p`() SELECT 2"}},
			[]report.Finding{{Category: "functions_modified", Count: 1, Severity: warning}}},
		"another mode of a trigger": {[]dump.Entry{{Kind: dump.KindTrigger, Name: "g", SQL: "x", Settings: dump.Settings{SQLMode: "ANSI"}}},
			[]dump.Entry{{Kind: dump.KindTrigger, Name: "g", SQL: "x"}}, []report.Finding{{Category: "triggers_modified", Count: 1, Severity: warning}}},
	} {
		if got := Findings(test.from, test.to); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
