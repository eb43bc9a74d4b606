// Package timeline draws the history of one object: one row for each write, oldest first, with days and long gaps
// between them.
package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/screen"
)

// Options configures the drawing of a history.
type Options struct {
	Screen screen.Screen
	Now    time.Time // its zone is that of the drawing
	Fold   bool      // equal writes become one row
}

// silence is the shortest gap that the drawing mentions.
const silence = time.Hour

// fewest is the number of equal writes in a row that are folded.
const fewest = 3

// Row is one write, or several equal ones.
type Row struct {
	first, last *revisions.Revision // oldest and newest of them
	count       int
}

// Render draws writes, newest first.
func (l Options) Render(title string, list []revisions.Revision, more bool) string {
	var b strings.Builder
	b.WriteString(l.Screen.Color(screen.Bold, l.Screen.Truncate(title+": "+l.summary(list), l.Screen.Width)) + "\n")
	if len(list) == 0 {
		return b.String()
	}
	if bar := l.density(list); bar != "" {
		b.WriteString(bar + "\n")
	}
	b.WriteString("\n")
	if more {
		b.WriteString(l.Screen.Color(screen.Dim, l.Screen.Sign("┆", ":")+" there are older writes: use --limit or --since to show them") + "\n")
	}
	l.rows(&b, list)
	return b.String()
}

func (l Options) summary(list []revisions.Revision) string {
	if len(list) == 0 {
		return "no write is known"
	}
	oldest, newest := list[len(list)-1].WrittenAt.Time, list[0].WrittenAt.Time
	if len(list) == 1 {
		return fmt.Sprintf("1 write, at %s %s (%s)", l.clock(newest), moments.Day(newest, l.Now), newest.In(l.Now.Location()).Format("MST"))
	}
	return fmt.Sprintf("%d writes, %s %s to %s %s (%s)", len(list),
		l.clock(oldest), moments.Day(oldest, l.Now), l.clock(newest), moments.Day(newest, l.Now), newest.In(l.Now.Location()).Format("MST"))
}

func (l Options) clock(t time.Time) string { return t.In(l.Now.Location()).Format("15:04:05") }

// density returns a bar of the number of writes over time.
func (l Options) density(list []revisions.Revision) string {
	oldest, newest := list[len(list)-1].WrittenAt.Time, list[0].WrittenAt.Time
	span := newest.Sub(oldest)
	if len(list) < 5 || span < time.Second {
		return ""
	}
	width := 48
	if l.Screen.Width > 0 {
		width = min(width, l.Screen.Width-22)
	}
	if width < 8 {
		return ""
	}
	counts := make([]int, width)
	for i := range list {
		at := int(int64(list[i].WrittenAt.Sub(oldest)) * int64(width) / (int64(span) + 1))
		counts[min(max(at, 0), width-1)]++
	}
	levels := []rune(l.Screen.Sign(" ▁▂▃▄▅▆▇█", " .:-=+*#@"))
	most := slices.Max(counts)
	bar := make([]rune, width)
	for i, n := range counts {
		bar[i] = levels[(n*(len(levels)-1)+most-1)/most]
	}
	return "  " + l.clock(oldest) + " " + l.Screen.Color(screen.Cyan, string(bar)) + " " + l.clock(newest)
}

func (l Options) rows(b *strings.Builder, list []revisions.Revision) {
	rows := l.fold(list)
	who := 0
	for _, r := range rows {
		who = max(who, len([]rune(author(r.last))))
	}
	who = min(who, 28)
	day, before := "", time.Time{}
	for _, r := range rows {
		at := r.first.WrittenAt.Time
		if today := at.In(l.Now.Location()).Format(time.DateOnly); today != day {
			day = today
			b.WriteString(l.Screen.Sign("│ ", "| ") + l.Screen.Color(screen.Bold, at.In(l.Now.Location()).Format("Monday 2006-01-02")) + "\n")
		} else if gap := at.Sub(before); gap >= silence {
			b.WriteString(l.Screen.Color(screen.Dim, l.Screen.Sign("┆ ", ": ")+moments.Ago(gap)+" without a write") + "\n")
		}
		before = r.last.WrittenAt.Time
		b.WriteString(l.row(r, who) + "\n")
	}
}

// fold combines equal writes in a row.
func (l Options) fold(list []revisions.Revision) []Row {
	var rows []Row
	for i := len(list) - 1; i >= 0; {
		j := i
		for l.Fold && j > 0 && same(&list[i], &list[j-1]) {
			j--
		}
		if n := i - j + 1; n >= fewest {
			rows = append(rows, Row{first: &list[i], last: &list[j], count: n})
			i = j - 1
			continue
		}
		rows = append(rows, Row{first: &list[i], last: &list[i], count: 1})
		i--
	}
	return rows
}

func same(a, b *revisions.Revision) bool {
	return a.Change == "update" && b.Change == "update" && a.User == b.User &&
		a.Object.UID == b.Object.UID && slices.Equal(a.By(), b.By()) && slices.Equal(a.ChangedFields, b.ChangedFields)
}

func (l Options) row(r Row, who int) string {
	s := l.Screen
	sign, colour := s.Sign("●", "*"), screen.Yellow
	switch r.last.Change {
	case "create":
		sign, colour = s.Sign("◆", "+"), screen.Green
	case "delete":
		sign, colour = s.Sign("✕", "x"), screen.Red
	}
	change := display.Safe(r.last.Change)
	ago := moments.Ago(l.Now.Sub(r.first.WrittenAt.Time)) + " ago"
	head := fmt.Sprintf("%s %s %s  ", sign, l.clock(r.first.WrittenAt.Time), screen.Pad(ago, 10))
	number := display.Safe(r.last.Revision)
	middle := fmt.Sprintf("%s  %s  %s  ", screen.Pad(number, 7), screen.Pad(change, 6), screen.Pad(s.Truncate(author(r.last), who), who))
	times := ""
	if r.count > 1 {
		times = fmt.Sprintf("%d times until %s: ", r.count, l.clock(r.last.WrittenAt.Time))
	}
	room, left := 0, 0
	if s.Width > 0 {
		room = max(s.Width-len([]rune(head+middle)), 1)
		left = max(room-len(times), 1)
	}
	what := s.Truncate(times+fields(r.last, left, s), room)
	return strings.TrimRight(s.Color(colour, sign)+head[len(sign):]+s.Color(screen.Dim, screen.Pad(number, 7))+middle[len(screen.Pad(number, 7)):]+what, " ")
}

// author returns the managers of a write, with the user if it is known.
func author(r *revisions.Revision) string {
	text := strings.Join(r.By(), ", ")
	if r.User != "" {
		text = strings.TrimSpace(text + " (" + r.User + ")")
	}
	if text == "" {
		return "-"
	}
	return display.Safe(text)
}

// fields returns as many of the changed fields as fit, and the number of the others.
func fields(r *revisions.Revision, room int, s screen.Screen) string {
	if r.Change == "delete" || len(r.ChangedFields) == 0 {
		return ""
	}
	if r.Change == "create" && len(r.ChangedFields) > 3 {
		return ""
	}
	text, open := "", ""
	if r.MoreChangedFields {
		open = "+"
	}
	for i, f := range r.ChangedFields {
		next := text
		if i > 0 {
			next += ", "
		}
		next += display.Safe(f)
		rest := ""
		if left := len(r.ChangedFields) - i - 1; left > 0 {
			rest = fmt.Sprintf(" +%d%s", left, open)
		}
		if room > 0 && len([]rune(next+rest)) > room {
			if i == 0 {
				return s.Truncate(tail(display.Safe(f), room-len(rest), s), room-len(rest)) + rest
			}
			return text + fmt.Sprintf(" +%d%s", len(r.ChangedFields)-i, open)
		}
		text = next
	}
	return text
}

// tail shortens a path to n characters. It keeps the end, which is more specific.
func tail(path string, n int, s screen.Screen) string {
	runes, dots := []rune(path), []rune(s.Sign("…", "..."))
	if len(runes) <= n || n <= len(dots) {
		return path
	}
	return string(dots) + string(runes[len(runes)-(n-len(dots)):])
}
