package profile

import (
	"slices"
	"testing"
)

func TestDifferencesNameWhatChangedAndNotWhereItStands(t *testing.T) {
	type object = map[string]any
	pods := object{"resource": "pods", "limit": 24}
	cases := map[string]struct {
		before, after any
		want          []string
	}{
		"should find nothing in the same":                  {object{"a": 1}, object{"a": 1}, nil},
		"should name a thing of a list":                    {object{"quotas": []any{pods, object{"resource": "jobs", "limit": 1}}}, object{"quotas": []any{object{"resource": "jobs", "limit": 2}, pods}}, []string{"quotas jobs.limit is 2 instead of 1"}},
		"should name a thing that is new":                  {object{"quotas": []any{}}, object{"quotas": []any{pods}}, []string{`quotas pods is new: {"limit":24}`}},
		"should name a thing that is gone":                 {object{"quotas": []any{pods}}, object{"quotas": []any{}}, []string{`quotas pods is gone, it was {"limit":24}`}},
		"should compare words as a set":                    {object{"minors": []any{"1.35", "1.36"}}, object{"minors": []any{"1.36", "1.37"}}, []string{"minors has 1.37 in addition", "minors no longer has 1.35"}},
		"should see another order":                         {object{"histories": []any{2, 32}}, object{"histories": []any{32, 2}}, []string{"histories has the order [32,2] instead of [2,32]"}},
		"should compare things that have one name as text": {object{"faults": []any{object{"class": "a", "x": 1}, object{"class": "a", "x": 2}}}, object{"faults": []any{object{"class": "a", "x": 1}}}, []string{`faults no longer has {"class":"a","x":2}`}},
		"should quote sentences":                           {object{"statement": "It holds."}, object{"statement": "It does not."}, []string{`statement is "It does not." instead of "It holds."`}},
		"should see a thing become a word":                 {object{"a": object{"b": 1}}, object{"a": "b"}, []string{`a is b instead of {"b":1}`}},
		"should keep a field that has the value of a name": {object{"list": []any{object{"name": "a", "x": "a"}}}, object{"list": []any{object{"name": "a", "x": "b"}}}, []string{"list a.x is b instead of a"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if got := differences(test.before, test.after); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
