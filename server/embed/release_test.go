package embed_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/embed"
)

// TestRelease: a program chooses the release by the words of the flags, and hears of a choice that is none.
func TestRelease(t *testing.T) {
	for _, c := range []struct{ release, minCompatibility, want string }{
		{"", "", ""},
		{"1.32", "1.31", ""},
		{"1.35", "", ""},
		{"1.36", "1.33", ""},
		{"1.31", "", "Release and MinCompatibility: emulation version 1.31 is not between [1.32, 1.36.0]"},
		{"1.32", "1.33", "Release and MinCompatibility: minCompatibilityVersion version 1.33 is not between [1.31, 1.32]"},
		{"newest", "", `could not parse "newest" as version`},
	} {
		plane, err := embed.New(t.Context(), embed.Options{Release: c.release, MinCompatibility: c.minCompatibility})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("Release %q, MinCompatibility %q: %v, want %q", c.release, c.minCompatibility, err, c.want)
		}
		if err == nil {
			if got := plane.Server.Schemas.Catalogue().Release().String(); c.release != "" && got != c.release {
				t.Errorf("Release %q: %s", c.release, got)
			}
			if err := plane.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
