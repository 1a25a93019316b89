package main

import (
	"strings"
	"testing"
)

func TestSettingsHaveDefaultsAndLimits(t *testing.T) {
	cases := map[string]struct {
		environment map[string]string
		want        settings
		says        string
	}{
		"a password alone": {map[string]string{"POSTGRES_PASSWORD": "p"}, settings{"ptah", "p", "ptah", "/var/lib/postgresql/data"}, ""},
		"everything": {map[string]string{"POSTGRES_USER": "u", "POSTGRES_PASSWORD": "p", "POSTGRES_DB": "d", "PGDATA": "/d"},
			settings{"u", "p", "d", "/d"}, ""},
		"a database named like its user": {map[string]string{"POSTGRES_USER": "u", "POSTGRES_PASSWORD": "p"}, settings{"u", "p", "u", "/var/lib/postgresql/data"}, ""},
		"a quote in the database":        {map[string]string{"POSTGRES_DB": `a"; DROP`}, settings{}, "POSTGRES_DB"},
		"a user of 64 bytes":             {map[string]string{"POSTGRES_USER": strings.Repeat("u", 64)}, settings{}, "POSTGRES_USER"},
		"a line end in the password":     {map[string]string{"POSTGRES_PASSWORD": "a\nb"}, settings{}, "POSTGRES_PASSWORD"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := settingsFrom(func(key string) string { return c.environment[key] })
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAnEmptyPasswordIsRefusedBeforeAnythingIsMade(t *testing.T) {
	dir := t.TempDir()
	err := initialise("/nonexistent", settings{user: "u", database: "d", data: dir + "/data"})
	if err == nil || !strings.Contains(err.Error(), "POSTGRES_PASSWORD is empty") {
		t.Errorf("got %v", err)
	}
}
