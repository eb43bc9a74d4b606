package cli

import (
	"fmt"
	"time"
)

// Size formats bytes for people.
func Size(bytes int64) string {
	switch n := float64(bytes); {
	case bytes < 10_000:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 10_000_000:
		return fmt.Sprintf("%.1f KB", n/1e3)
	case bytes < 10_000_000_000:
		return fmt.Sprintf("%.1f MB", n/1e6)
	default:
		return fmt.Sprintf("%.1f GB", n/1e9)
	}
}

func Time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
