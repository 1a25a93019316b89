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
	} {
		if got := Lacking(test.lines, "shop"); !slices.Equal(got, test.want) {
			t.Errorf("%s: lacks %v", name, got)
		}
	}
}
