package document

import (
	"fmt"
	"strings"
	"time"
)

// Duration is a length of time declared as text such as 90s, 5m or 1h30m. Zero and negative lengths are refused.
type Duration time.Duration

// UnmarshalText reads the declared form.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed <= 0 {
		return fmt.Errorf("it must be a positive length of time such as 30s, 5m or 1h30m, not %q", text)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalText writes the canonical form: the shortest text, so that 60s and 1m are the same declaration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Std returns the length as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }
