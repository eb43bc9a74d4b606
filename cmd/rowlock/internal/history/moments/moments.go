// Package moments parses moments of the past as people write them, and prints them so that a misunderstood moment
// is noticed at once.
package moments

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Moment is a time or a revision of the past. The zero Moment is none.
type Moment struct {
	Time     time.Time
	Revision int64 // 0: Time is meant
}

// Forms describes the syntax of Parse, for help texts.
const Forms = `14:05 (today, or yesterday if that is still to come), "yesterday 14:05", "2026-11-23 14:05", 2026-11-23T14:05:00Z, 2h or "2h ago" (s, m, h, d, w), now, or a revision such as 1234`

// ErrFuture is the error for a time in the future.
var ErrFuture = errors.New("that is in the future")

// layouts are times of day with a date, in the zone of the user unless they name one.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
}

var clocks = []string{"15:04:05", "15:04"}

// Parse parses a moment. Times without a zone are in the zone of now.
func Parse(text string, now time.Time) (Moment, error) {
	s := strings.TrimSpace(text)
	if s == "" {
		return Moment{}, errors.New("no time: want " + Forms)
	}
	if s == "now" {
		return Moment{Time: now}, nil
	}
	if n, err := strconv.ParseUint(strings.TrimPrefix(s, "@"), 10, 63); err == nil {
		if n == 0 {
			return Moment{}, fmt.Errorf("%q: revisions begin with 1", text)
		}
		return Moment{Revision: int64(n)}, nil
	}
	t, err := parseTime(s, now)
	if err != nil {
		return Moment{}, fmt.Errorf("%q is not a time or revision: want %s", text, Forms)
	}
	if t.After(now) {
		return Moment{}, fmt.Errorf("%q is %s: %w", text, t.Format(time.RFC3339), ErrFuture)
	}
	return Moment{Time: t}, nil
}

var errForm = errors.New("unknown form")

func parseTime(s string, now time.Time) (time.Time, error) {
	if d, err := Duration(strings.TrimSpace(strings.TrimSuffix(s, "ago"))); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	day, clock, named := strings.Cut(s, " ")
	if !named {
		day, clock = "", s
	}
	for _, layout := range clocks {
		c, err := time.Parse(layout, strings.TrimSpace(clock))
		if err != nil {
			continue
		}
		t := time.Date(now.Year(), now.Month(), now.Day(), c.Hour(), c.Minute(), c.Second(), 0, now.Location())
		switch {
		case day == "yesterday", day == "" && t.After(now):
			t = t.AddDate(0, 0, -1)
		case day != "" && day != "today":
			return time.Time{}, errForm
		}
		return t, nil
	}
	return time.Time{}, errForm
}

// longest is the longest duration that is accepted.
const longest = 100 * 365 * 24 * time.Hour

// Duration reads durations as Go writes them, and days and weeks: 90s, 2h30m, 7d, 1w.
func Duration(s string) (time.Duration, error) {
	total := time.Duration(0)
	rest := s
	for _, unit := range []struct {
		letter string
		is     time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, after, found := strings.Cut(rest, unit.letter)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || time.Duration(n) > longest/unit.is {
			return 0, fmt.Errorf("%q is not a duration: want one such as 90s, 2h30m, 7d or 1w", s)
		}
		total, rest = total+time.Duration(n)*unit.is, after
	}
	if rest != "" || s == "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d > longest {
			return 0, fmt.Errorf("%q is not a duration: want one such as 90s, 2h30m, 7d or 1w", s)
		}
		total += d
	}
	return total, nil
}

// String returns the moment as the API takes it.
func (m Moment) String() string {
	if m.Revision > 0 {
		return strconv.FormatInt(m.Revision, 10)
	}
	return m.Time.UTC().Format(time.RFC3339Nano)
}

// Describe returns the moment in words: "14:05:00 today (+01:00), 2 h ago", or "revision 1234".
func (m Moment) Describe(now time.Time) string {
	if m.Revision > 0 {
		return fmt.Sprintf("revision %d", m.Revision)
	}
	t := m.Time.In(now.Location())
	return fmt.Sprintf("%s %s (%s), %s ago", t.Format("15:04:05"), Day(t, now), t.Format("Z07:00"), Ago(now.Sub(t)))
}

// Day returns "today", "yesterday", or the date.
func Day(t, now time.Time) string {
	t = t.In(now.Location())
	for i, word := range []string{"today", "yesterday"} {
		if t.Format(time.DateOnly) == now.AddDate(0, 0, -i).Format(time.DateOnly) {
			return word
		}
	}
	return t.Format(time.DateOnly)
}

// Ago returns a duration in its two largest units: 3d2h, 2h5m, 40s.
func Ago(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	units := []struct {
		letter string
		is     time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	for i, unit := range units {
		n := d / unit.is
		if n == 0 && unit.letter != "s" {
			continue
		}
		text := strconv.Itoa(int(n)) + unit.letter
		if i+1 < len(units) {
			if more := (d - n*unit.is) / units[i+1].is; more > 0 && n < 10 {
				text += strconv.Itoa(int(more)) + units[i+1].letter
			}
		}
		return text
	}
	return "0s"
}
