package observe

import (
	"slices"
	"testing"
)

func TestLacking(t *testing.T) {
	all := []string{"SELECT", "SHOW VIEW", "TRIGGER", "EVENT", "EXECUTE"}
	for name, test := range map[string]struct {
		lines []string
		want  []string
	}{
		"nothing":                        {nil, all},
		"a bare login":                   {[]string{"GRANT USAGE ON *.* TO `app`@`%`"}, all},
		"everything on the database":     {[]string{"GRANT USAGE ON *.* TO `app`@`%`", "GRANT ALL PRIVILEGES ON `shop`.* TO `app`@`%`"}, nil},
		"everything everywhere":          {[]string{"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, CREATE ROUTINE ON *.* TO `root`@`%` WITH GRANT OPTION"}, nil},
		"everything on another database": {[]string{"GRANT ALL PRIVILEGES ON `shop2`.* TO `app`@`%`"}, all},
		"a pattern":                      {[]string{"GRANT ALL PRIVILEGES ON `sh%`.* TO `app`@`%`"}, nil},
		"a pattern taken literally":      {[]string{"GRANT ALL PRIVILEGES ON `sh\\_p`.* TO `app`@`%`"}, all},
		"one table only":                 {[]string{"GRANT ALL PRIVILEGES ON `shop`.`t` TO `app`@`%`"}, all},
		"without triggers":               {[]string{"GRANT SELECT, SHOW VIEW, EVENT, ALTER ROUTINE ON `shop`.* TO `app`@`%`"}, []string{"TRIGGER"}},
		"a partial revocation":           {[]string{"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, EXECUTE ON *.* TO `app`@`%`", "REVOKE SELECT ON `shop`.* FROM `app`@`%`"}, []string{"SELECT"}},
		"a dynamic privilege":            {[]string{"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON `shop`.* TO `app`@`%`", "GRANT SHOW_ROUTINE ON *.* TO `app`@`%`"}, nil},
		"a role":                         {[]string{"GRANT `reader`@`%` TO `app`@`%`"}, all},
		"a revocation beside a grant":    {[]string{"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, EXECUTE ON *.* TO `app`@`%`", "GRANT SELECT ON `shop`.* TO `app`@`%`", "REVOKE SELECT ON `shop`.* FROM `app`@`%`"}, nil},
		"a list of columns":              {[]string{"GRANT SELECT (`a`, `b`), SHOW VIEW, TRIGGER, EVENT, EXECUTE ON `shop`.`t` TO `app`@`%`"}, all},
	} {
		if got := Held(test.lines, "shop", false).Lacking(); !slices.Equal(got, test.want) {
			t.Errorf("%s: lacks %v", name, got)
		}
	}
}

func TestNamesOfDatabasesAreNoPatternsOnAServerWithPartialRevocations(t *testing.T) {
	for line, want := range map[string]bool{
		"GRANT ALL PRIVILEGES ON `shop_1`.* TO `app`@`%`":   true,
		"GRANT ALL PRIVILEGES ON `shop\\_1`.* TO `app`@`%`": true,
		"GRANT ALL PRIVILEGES ON `shop__`.* TO `app`@`%`":   false,
		"GRANT ALL PRIVILEGES ON `shop%`.* TO `app`@`%`":    false,
	} {
		if got := len(Held([]string{line}, "shop_1", true).Lacking()) == 0; got != want {
			t.Errorf("%s: %t", line, got)
		}
		if !want && len(Held([]string{line}, "shop_1", false).Lacking()) > 0 {
			t.Errorf("%s is no pattern", line)
		}
	}
}

func TestOnlyAGrantOnEverythingGivesSuper(t *testing.T) {
	for line, want := range map[string]bool{
		"GRANT SELECT, SUPER ON *.* TO `app`@`%`":       true,
		"GRANT ALL PRIVILEGES ON `shop`.* TO `app`@`%`": false,
		"GRANT SELECT, CREATE VIEW ON *.* TO `app`@`%`": false,
	} {
		if got := Held([]string{line}, "shop", false).Super(); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}
