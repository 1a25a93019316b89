package main

import (
	"strings"
	"testing"
)

func TestSettingsHaveDefaultsAndLimits(t *testing.T) {
	for name, test := range map[string]struct {
		environment map[string]string
		want        settings
		says        string
	}{
		"a password alone":        {map[string]string{"MYSQL_PASSWORD": "p"}, settings{"ptah", "p", "ptah", "/var/lib/mysql/data"}, ""},
		"everything":              {map[string]string{"MYSQL_USER": "u", "MYSQL_PASSWORD": "p", "MYSQL_DATABASE": "d", "MYSQL_DATA": "/d"}, settings{"u", "p", "d", "/d"}, ""},
		"a quote in the user":     {map[string]string{"MYSQL_USER": "a'"}, settings{}, "MYSQL_USER"},
		"a backtick in the base":  {map[string]string{"MYSQL_DATABASE": "a`"}, settings{}, "MYSQL_DATABASE"},
		"a name that is too long": {map[string]string{"MYSQL_USER": strings.Repeat("a", 33)}, settings{}, "MYSQL_USER"},
		"a password of two lines": {map[string]string{"MYSQL_PASSWORD": "a\nb"}, settings{}, "MYSQL_PASSWORD"},
	} {
		got, err := settingsFrom(func(key string) string { return test.environment[key] })
		if test.says == "" && (err != nil || got != test.want) || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestAPasswordCannotLeaveItsQuotes(t *testing.T) {
	sql := accounts(settings{user: "u", password: `a'\'; DROP`, database: "d"})
	if !strings.Contains(sql, `IDENTIFIED BY 'a''\\''; DROP';`) || strings.Count(sql, "\n") != 4 {
		t.Error(sql)
	}
}

func TestAFirstStartNeedsAPassword(t *testing.T) {
	if err := initialise(settings{data: t.TempDir() + "/data"}); err == nil || !strings.Contains(err.Error(), "MYSQL_PASSWORD") {
		t.Errorf("initialise without a password: %v", err)
	}
}
