package database

import (
	"strings"
	"testing"
)

// FuzzPublicURL: no part of a password is shown, however it is written.
func FuzzPublicURL(f *testing.F) {
	f.Add("s3cret", "host:5432/db")
	f.Add("12#secret", "host/db")
	f.Add("12/secret", "host/db?sslmode=disable")
	f.Add("a%zzb?c@d", "h")
	f.Add("@secret", "h")
	f.Add("/000000", "\x10")
	f.Add("000000", "\x8000000")
	f.Fuzz(func(t *testing.T, password, rest string) {
		if len(password) < 6 || strings.ContainsAny(rest, "@#") || strings.Contains(rest, password) || strings.Contains("postgres://user:xxxxx@", password) {
			return
		}
		for _, url := range []string{"postgres://user:" + password + "@" + rest, "postgres://user@host/db?password=" + password, "postgresql://user:" + password + "@" + rest + "?x=" + password} {
			shown := PublicURL(url)
			// The shown parts of a URL with another password contain nothing of the password.
			others := PublicURL(strings.ReplaceAll(url, password, "xxxxx"))
			for _, part := range strings.FieldsFunc(password, func(r rune) bool { return strings.ContainsRune("/?#@:", r) }) {
				if len(part) >= 6 && !strings.Contains(others, part) && strings.Contains(shown, part) {
					t.Fatalf("%q is shown as %q", url, shown)
				}
			}
		}
	})
}
