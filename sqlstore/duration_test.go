package sqlstore_test

import (
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// TestParseDuration: a duration is above 0, also one in days.
func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5m": 5 * time.Minute, "36h": 36 * time.Hour, "7d": 7 * 24 * time.Hour, "0.5d": 12 * time.Hour, "36500d": 36500 * 24 * time.Hour,
		"": 0, "0s": 0, "-1h": 0, "0d": 0, "-1d": 0, "1e-20d": 0, "36501d": 0, "1e300d": 0, "infd": 0, "-infd": 0, "nand": 0, "d": 0, "7 d": 0, "1h7d": 0,
	} {
		if got, err := sqlstore.ParseDuration(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}
