package classify

import (
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/pattern"
	"ptah.run/ptah/operator/plan/report"
)

func TestChangesOfRows(t *testing.T) {
	for sql, want := range map[string]report.Statement{
		"INSERT INTO `t` (`id`, `note`) VALUES (-1, _utf8mb4 x'5c'), (2, NULL), (1e0, x'00')": {Kind: "INSERT", Severity: safe, LockClass: noLock, RewriteRisk: "none"},
		"UPDATE `t` SET `note` = 'x' WHERE `id` = 1":                                          {Kind: "UPDATE", Severity: destructive, LockClass: noLock, RewriteRisk: "none"},
		"DELETE FROM `t` WHERE `id` = 1":                                                      {Kind: "DELETE", Severity: destructive, LockClass: noLock, RewriteRisk: "none"},
		"INSERT INTO `t` (`id`) VALUES (f())":                                                 {Kind: "INSERT", Severity: destructive, LockClass: exclusive, RewriteRisk: "maybe"},
		"INSERT INTO `t` SELECT 1":                                                            {Kind: "INSERT", Severity: destructive, LockClass: exclusive, RewriteRisk: "maybe"},
		"INSERT IGNORE INTO `t` (`id`) VALUES (1)":                                            {Kind: "INSERT", Severity: destructive, LockClass: exclusive, RewriteRisk: "maybe"},
		"INSERT INTO `t` (`id`) VALUES (1) ON DUPLICATE KEY UPDATE `note` = 'x'":              {Kind: "INSERT", Severity: destructive, LockClass: exclusive, RewriteRisk: "maybe"},
		"REPLACE INTO `t` (`id`) VALUES (1)":                                                  {Kind: "REPLACE", Severity: destructive, LockClass: exclusive, RewriteRisk: "maybe"},
		"UPDATE `t` SET `id` = 1":                                                             {Kind: "UPDATE", Severity: destructive, LockClass: exclusive, RewriteRisk: "maybe"},
		"DELETE `t` FROM `t` JOIN `f` WHERE `t`.`id` = 1":                                     {Kind: "DELETE", Severity: destructive, LockClass: exclusive, RewriteRisk: "maybe"},
	} {
		got := New(before, nil).Statement(sql)
		if got.Kind != want.Kind || got.Severity != want.Severity || got.LockClass != want.LockClass || got.RewriteRisk != want.RewriteRisk {
			t.Errorf("%s: %+v", sql, got)
		}
		for name, touched := range map[string]bool{"t": true, "note": want.RewriteRisk == report.RewriteMaybe && strings.Contains(sql, "note")} {
			patterns, err := pattern.Parse([]string{name}, true)
			if err != nil || Protected([]report.Statement{got}, before, patterns, "shop") != touched {
				t.Errorf("%s: touching %s is not %t", sql, name, touched)
			}
		}
	}
}
