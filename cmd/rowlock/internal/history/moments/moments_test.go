package moments_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
)

var zone = time.FixedZone("somewhere", 3600)

var now = time.Date(2026, 11, 23, 14, 30, 0, 0, zone)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"14:05": "2026-11-23T13:05:00Z", "14:05:30": "2026-11-23T13:05:30Z", "today 14:05": "2026-11-23T13:05:00Z",
		"23:59": "2026-11-22T22:59:00Z", "yesterday 14:05": "2026-11-22T13:05:00Z", "14:30": "2026-11-23T13:30:00Z",
		"2026-11-20 08:00": "2026-11-20T07:00:00Z", "2026-11-20T08:00": "2026-11-20T07:00:00Z", "2026-11-20": "2026-11-19T23:00:00Z",
		"2026-11-20T08:00:00Z": "2026-11-20T08:00:00Z", "2026-11-20T08:00:00.25+02:00": "2026-11-20T06:00:00.25Z", "2026-11-20T08:00Z": "2026-11-20T08:00:00Z",
		"2h": "2026-11-23T11:30:00Z", "2h ago": "2026-11-23T11:30:00Z", "90s": "2026-11-23T13:28:30Z", "7d": "2026-11-16T13:30:00Z", "1w2d3h": "2026-11-14T10:30:00Z",
		"now": "2026-11-23T13:30:00Z", "1234": "1234", "@1234": "1234", " 7 ": "7",
	} {
		m, err := moments.Parse(text, now)
		if err != nil || m.String() != want {
			t.Errorf("%q: %s, %v; want %s", text, m, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "0", "-1", "tomorrow 14:05", "25:00", "2x", "h", "1d1d1d", "-2h", "ago", "monday", "99999999999999999999", "40000w", "2026-13-01", "14:05 today"} {
		if m, err := moments.Parse(text, now); err == nil {
			t.Errorf("%q was read as %s", text, m)
		}
	}
	for _, text := range []string{"2026-11-24", "today 14:31", "2026-11-23T13:30:01Z"} {
		if _, err := moments.Parse(text, now); !errors.Is(err, moments.ErrFuture) {
			t.Errorf("%q: %v; want ErrFuture", text, err)
		}
	}
}

func TestSay(t *testing.T) {
	for text, want := range map[string]string{
		"14:05": "14:05:00 today (+01:00), 25m ago", "23:59": "23:59:00 yesterday (+01:00), 14h ago",
		"2026-11-20T08:00:00Z": "09:00:00 2026-11-20 (+01:00), 3d5h ago", "12": "revision 12", "5s": "14:29:55 today (+01:00), 5s ago",
	} {
		m, err := moments.Parse(text, now)
		if err != nil || m.Describe(now) != want {
			t.Errorf("%q is described as %q, %v; want %q", text, m.Describe(now), err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"14:05", "2h ago", "1w2d", "2026-11-20T08:00Z", "12"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := moments.Parse(text, now)
		if err == nil && m.Revision <= 0 && m.Time.After(now) {
			t.Errorf("%q is %s, in the future", text, m)
		}
	})
}
