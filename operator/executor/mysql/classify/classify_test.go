package classify

import (
	"slices"
	"testing"

	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/pattern"
	"ptah.run/ptah/operator/plan/report"
)

var before = []dump.Entry{
	{Kind: dump.KindTable, Name: "t", SQL: "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `note` varchar(20) DEFAULT NULL,\n  `big` bigint DEFAULT NULL,\n" +
		"  `kind` enum('a','c') NOT NULL DEFAULT 'a',\n  `amount` decimal(12,2) NOT NULL,\n  `g` int GENERATED ALWAYS AS ((`id` * 2)) STORED,\n" +
		"  PRIMARY KEY (`id`),\n  UNIQUE KEY `u` (`note`),\n  KEY `k` (`big`),\n  CONSTRAINT `c` CHECK ((`id` > 0))\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"},
	{Kind: dump.KindTable, Name: "f", SQL: "CREATE TABLE `f` (\n  `a` text,\n  FULLTEXT KEY `x` (`a`)\n) ENGINE=InnoDB"},
}

func TestStatement(t *testing.T) {
	for sql, want := range map[string]struct {
		kind     string
		severity report.Severity
		lock     string
		rewrite  report.RewriteRisk
	}{
		"CREATE TABLE `n` (`id` int)":                 {"CREATE TABLE", safe, none, report.RewriteNone},
		"CREATE TABLE `n` AS SELECT 1":                {"CREATE TABLE", destructive, exclusive, report.RewriteMaybe},
		"DROP TABLE `t`":                              {"DROP TABLE", destructive, exclusive, report.RewriteNone},
		"TRUNCATE TABLE `t`":                          {"TRUNCATE", destructive, exclusive, report.RewriteMaybe},
		"DELETE FROM t":                               {"DELETE", destructive, exclusive, report.RewriteMaybe},
		"CREATE DATABASE x":                           {"CREATE DATABASE", destructive, exclusive, report.RewriteMaybe},
		"GRANT ALL ON *.* TO x":                       {"GRANT", destructive, exclusive, report.RewriteMaybe},
		"not sql at all":                              {"NOT", destructive, exclusive, report.RewriteMaybe},
		"'x'":                                         {"UNKNOWN", destructive, exclusive, report.RewriteMaybe},
		"ALTER TABLE `t` ADD COLUMN `x` int":          {"ALTER TABLE", safe, noLock, report.RewriteNone},
		"ALTER TABLE `t` ADD COLUMN `x` int NOT NULL": {"ALTER TABLE", warning, noLock, report.RewriteNone},
		"ALTER TABLE `f` ADD COLUMN `x` int":          {"ALTER TABLE", safe, noLock, report.RewriteMaybe},
		"ALTER TABLE `unknown` ADD COLUMN `x` int":    {"ALTER TABLE", safe, noLock, report.RewriteMaybe},
		"ALTER TABLE `t` ADD COLUMN `x` int GENERATED ALWAYS AS (`id`) STORED":        {"ALTER TABLE", safe, shared, report.RewriteTable},
		"ALTER TABLE `t` DROP COLUMN `note`":                                          {"ALTER TABLE", destructive, noLock, report.RewriteMaybe},
		"ALTER TABLE `t` MODIFY COLUMN `note` varchar(40)":                            {"ALTER TABLE", warning, noLock, report.RewriteMaybe},
		"ALTER TABLE `t` MODIFY COLUMN `note` varchar(10)":                            {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `note` varchar(40) COLLATE utf8mb4_bin":        {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `note` varchar(20) NOT NULL":                   {"ALTER TABLE", warning, noLock, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `note` varchar(20) COMMENT 'x'":                {"ALTER TABLE", safe, noLock, report.RewriteMaybe},
		"ALTER TABLE `t` MODIFY COLUMN `id` bigint NOT NULL":                          {"ALTER TABLE", warning, shared, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `id` int NOT NULL AUTO_INCREMENT":              {"ALTER TABLE", warning, shared, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `big` int":                                     {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `big` bigint unsigned":                         {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `amount` decimal(14,4) NOT NULL":               {"ALTER TABLE", warning, shared, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `amount` decimal(12,4) NOT NULL":               {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `kind` enum('a','c','d') NOT NULL":             {"ALTER TABLE", warning, noLock, report.RewriteMaybe},
		"ALTER TABLE `t` MODIFY COLUMN `kind` enum('a','b','c') NOT NULL":             {"ALTER TABLE", warning, shared, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `kind` enum('a') NOT NULL":                     {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `kind` enum('c','a') NOT NULL":                 {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `g` int":                                       {"ALTER TABLE", warning, shared, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `unknown` int":                                 {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` MODIFY COLUMN `note` varchar(20), CHARSET latin1":            {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` CHANGE COLUMN `note` `n` varchar(20)":                        {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` ADD KEY `x` (`note`)":                                        {"ALTER TABLE", safe, noLock, report.RewriteTable},
		"ALTER TABLE `t` ADD UNIQUE KEY `x` (`note`)":                                 {"ALTER TABLE", warning, noLock, report.RewriteTable},
		"ALTER TABLE `t` ADD FULLTEXT KEY `x` (`note`)":                               {"ALTER TABLE", safe, shared, report.RewriteTable},
		"ALTER TABLE `t` DROP KEY `k`":                                                {"ALTER TABLE", warning, noLock, report.RewriteNone},
		"ALTER TABLE `t` DROP KEY `u`":                                                {"ALTER TABLE", destructive, noLock, report.RewriteNone},
		"ALTER TABLE `t` DROP KEY `unknown`":                                          {"ALTER TABLE", destructive, noLock, report.RewriteNone},
		"ALTER TABLE `t` DROP PRIMARY KEY":                                            {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` DROP CHECK `c`":                                              {"ALTER TABLE", warning, noLock, report.RewriteNone},
		"ALTER TABLE `t` DROP FOREIGN KEY `x`":                                        {"ALTER TABLE", warning, noLock, report.RewriteNone},
		"ALTER TABLE `t` ADD CONSTRAINT `d` CHECK (`id` > 1)":                         {"ALTER TABLE", warning, shared, report.RewriteTable},
		"ALTER TABLE `t` ADD CONSTRAINT `x` FOREIGN KEY (`id`) REFERENCES `p` (`id`)": {"ALTER TABLE", warning, shared, report.RewriteTable},
		"ALTER TABLE `t` COMMENT 'x'":                                                 {"ALTER TABLE", safe, noLock, report.RewriteNone},
		"ALTER TABLE `t` ROW_FORMAT COMPRESSED":                                       {"ALTER TABLE", warning, noLock, report.RewriteTable},
		"ALTER TABLE `t` ENGINE MyISAM":                                               {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` CONVERT TO CHARACTER SET latin1":                             {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` DROP PARTITION `p`":                                          {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` REMOVE PARTITIONING":                                         {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` PARTITION BY HASH (`id`) PARTITIONS 4":                       {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"ALTER TABLE `t` RENAME TO `s`":                                               {"ALTER TABLE", destructive, exclusive, report.RewriteTable},
		"CREATE VIEW `v` AS SELECT 1":                                                 {"CREATE VIEW", safe, none, report.RewriteNone},
		"CREATE OR REPLACE VIEW `v` AS SELECT 1":                                      {"CREATE VIEW", warning, none, report.RewriteNone},
		"DROP VIEW `v`":                                                               {"DROP VIEW", warning, none, report.RewriteNone},
		"CREATE TRIGGER `g` BEFORE INSERT ON `t` FOR EACH ROW SET NEW.id = 1":         {"CREATE TRIGGER", warning, exclusive, report.RewriteNone},
		"DROP TRIGGER `g`": {"DROP TRIGGER", warning, exclusive, report.RewriteNone},
		"CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY DO DELETE FROM t": {"CREATE EVENT", warning, none, report.RewriteNone},
		"DROP PROCEDURE `p`": {"DROP PROCEDURE", destructive, none, report.RewriteNone},
		"SET SESSION sql_mode = 'ANSI', character_set_client = utf8mb4, collation_connection = utf8mb4_bin, time_zone = 'UTC'": {"SET SESSION", safe, none, report.RewriteNone},
		"SET SESSION foreign_key_checks = 0": {"SET SESSION", destructive, exclusive, report.RewriteMaybe},
		"SET SESSION sql_mode = (SELECT 1)":  {"SET SESSION", destructive, exclusive, report.RewriteMaybe},
		"SET GLOBAL x = 1":                   {"SET", destructive, exclusive, report.RewriteMaybe},
	} {
		got := New(before, nil).Statement(sql)
		if got.Kind != want.kind || got.Severity != want.severity || got.LockClass != want.lock || got.RewriteRisk != want.rewrite || got.SQL != sql {
			t.Errorf("%s\n is %s, %s (%s), %s, %s", sql, got.Kind, got.Severity, got.Reason, got.LockClass, got.RewriteRisk)
		}
		if (got.Severity != safe) != (got.Reason != "") {
			t.Errorf("%s is %s because %q", sql, got.Severity, got.Reason)
		}
	}
}

func TestAPlanInOrder(t *testing.T) {
	c := New(before, nil)
	for _, step := range []struct {
		sql  string
		want report.Severity
		lock string
	}{
		{"CREATE TABLE `n` (`id` int)", safe, none},
		{"ALTER TABLE `n` ADD PRIMARY KEY (`id`)", safe, none},
		{"ALTER TABLE `n` ADD CONSTRAINT `s` FOREIGN KEY (`id`) REFERENCES `n` (`id`)", safe, none},
		{"ALTER TABLE `n` ADD CONSTRAINT `x` FOREIGN KEY (`id`) REFERENCES `t` (`id`)", safe, shared},
		{"ALTER TABLE `n` DROP COLUMN `id`", destructive, noLock},
		{"ALTER TABLE `t` ADD PRIMARY KEY (`id`)", warning, noLock},
	} {
		if got := c.Statement(step.sql); got.Severity != step.want || got.LockClass != step.lock {
			t.Errorf("%s is %s with lock %s", step.sql, got.Severity, got.LockClass)
		}
	}
}

func TestPrivileges(t *testing.T) {
	for sql, want := range map[string][]report.PrivilegeChange{
		"CREATE PROCEDURE `p`() SELECT 1":                                                 {report.PrivilegeSecurityDefiner},
		"CREATE PROCEDURE `p`() SQL SECURITY INVOKER SELECT 1":                            nil,
		"CREATE FUNCTION `f`() RETURNS int BEGIN SELECT 'x' SQL SECURITY INVOKER; END":    {report.PrivilegeSecurityDefiner},
		"CREATE PROCEDURE `p`() CREATE SQL SECURITY INVOKER VIEW `w` AS SELECT 1":         {report.PrivilegeSecurityDefiner},
		"CREATE PROCEDURE `p`() ALTER FUNCTION `f` SQL SECURITY INVOKER":                  {report.PrivilegeSecurityDefiner},
		"CREATE FUNCTION `f`() RETURNS int COMMENT 'x' SQL SECURITY INVOKER RETURN 1":     nil,
		"CREATE DEFINER=`a`@`b` TRIGGER `g` BEFORE INSERT ON `t` FOR EACH ROW SET @a = 1": {report.PrivilegeDefiner},
		"CREATE DEFINER=`a`@`b` PROCEDURE `p`() SELECT 1":                                 {report.PrivilegeDefiner, report.PrivilegeSecurityDefiner},
		"CREATE DEFINER=`a`@`b` VIEW `v` AS SELECT 1":                                     {report.PrivilegeDefiner},
		"CREATE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW `v` AS SELECT 1":            nil,
		"CREATE VIEW `v` AS SELECT 1":                                                     nil,
		"CREATE TABLE `definer` (`definer` int)":                                          nil,
	} {
		if got := New(before, nil).Statement(sql).PrivilegeChanges; !slices.Equal(got, want) {
			t.Errorf("%s changes %v", sql, got)
		}
	}
}

func TestWhatAnotherAccountMadeChangesHands(t *testing.T) {
	foreign := map[dump.Key]bool{{Kind: dump.KindView, Name: "V"}: true, {Kind: dump.KindTrigger, Name: "g"}: true, {Kind: dump.KindView, Name: "own"}: false}
	for sql, want := range map[string]bool{
		"CREATE OR REPLACE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW `v` AS SELECT 1":      true,
		"CREATE TRIGGER IF NOT EXISTS `shop`.`g` BEFORE INSERT ON `t` FOR EACH ROW SET @a = 1": true,
		"CREATE OR REPLACE VIEW `own` AS SELECT 1":                                             false,
		"CREATE VIEW `g` AS SELECT 1":                                                          false,
		"CREATE EVENT `v` ON SCHEDULE EVERY 1 DAY DO SELECT 1":                                 false,
		"DROP TRIGGER `g`": false,
	} {
		if got := slices.Contains(New(nil, foreign).Statement(sql).PrivilegeChanges, report.PrivilegeDefiner); got != want {
			t.Errorf("%s: %t", sql, got)
		}
	}
}

func TestProtected(t *testing.T) {
	for sql, want := range map[string]bool{
		"ALTER TABLE `Orders` ADD COLUMN `x` int": true,
		"DROP TABLE `orders`":                     true,
		"ALTER TABLE `x` ADD CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `orders` (`id`)": true,
		"CREATE TRIGGER `g` BEFORE INSERT ON `orders` FOR EACH ROW SET @a = 1":            true,
		"CREATE TRIGGER `on` BEFORE INSERT ON shop.`orders` FOR EACH ROW SET @a = 1":      true,
		"CREATE TRIGGER `g` BEFORE INSERT ON \"orders\" FOR EACH ROW SET @a = 1":          true,
		"ALTER TABLE `shop`.`orders` ADD COLUMN `x` int":                                  true,
		"DROP TRIGGER `G`":                                true,
		"DROP TRIGGER `shop`.`g`":                         true,
		"DROP TRIGGER `h`":                                false,
		"TRUNCATE orders":                                 true,
		"ALTER TABLE `x` ADD COLUMN `orders` int":         false,
		"CREATE VIEW `v` AS SELECT * FROM `orders`":       false,
		"CREATE PROCEDURE `p`() DELETE FROM `orders`":     false,
		"CREATE TABLE `other` (`a` int DEFAULT 'orders')": false,
	} {
		patterns, err := pattern.Parse([]string{"orders"}, true)
		if err != nil {
			t.Fatal(err)
		}
		entries := []dump.Entry{{Kind: dump.KindTrigger, Name: "g", On: "orders"}, {Kind: dump.KindTrigger, Name: "h", On: "other"}}
		if got := Protected([]report.Statement{New(nil, nil).Statement(sql)}, entries, patterns, "shop"); got != want {
			t.Errorf("%s: protected is %v", sql, got)
		}
	}
}

func FuzzStatement(f *testing.F) {
	f.Add("ALTER TABLE `t` MODIFY COLUMN `note` varchar(40)")
	f.Add("CREATE DEFINER=`a`@`b` PROCEDURE `p`() SELECT 1")
	f.Add("SET SESSION sql_mode = 'x'")
	f.Fuzz(func(t *testing.T, sql string) {
		got := New(before, nil).Statement(sql)
		if got.Kind == "" || got.LockClass == "" || got.Severity == "" {
			t.Fatalf("%q: %+v", sql, got)
		}
	})
}
