package bench

import "testing"

func TestAPasswordInALogIsFound(t *testing.T) {
	secrets := []string{"", "p0123456789abcdef"}
	for text, want := range map[string]bool{
		"": false, "connected as app": false, "postgres://app:p0123456789abcdef@db": true, "p0123456789abcde": false,
	} {
		if Discloses(text, secrets) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
