package timeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/screen"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/timeline"
	"github.com/rowlock/rowlock/server/history"
)

var now = time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC)

func write(n int, ago time.Duration, change, manager string, fields ...string) revisions.Revision {
	return revisions.Revision{
		Revision: fmt.Sprint(n), Change: change, WrittenAt: metav1.NewMicroTime(now.Add(-ago)),
		Managers: []history.Manager{{Manager: manager}}, ChangedFields: fields,
	}
}

// life returns the past of an object, newest first.
func life() []revisions.Revision {
	deleted := write(30, time.Minute, "delete", "")
	deleted.Managers = nil
	scaled := write(20, 2*time.Hour, "update", "kubectl", "spec.replicas", "spec.paused", "spec.template")
	scaled.User = "ann"
	return []revisions.Revision{
		deleted,
		write(23, 10*time.Minute, "update", "beat", "spec.renewTime"), write(22, 11*time.Minute, "update", "beat", "spec.renewTime"),
		write(21, 12*time.Minute, "update", "beat", "spec.renewTime"),
		scaled, write(10, 20*time.Hour, "create", "helm"),
	}
}

func TestDraw(t *testing.T) {
	line := timeline.Options{Screen: screen.Screen{Unicode: true}, Now: now, Fold: true}
	got := line.Render("web", life(), true)
	want := `web: 6 writes, 18:00:00 yesterday to 13:59:00 today (UTC)
  18:00:00 █                                     █    ███ 13:59:00

┆ there are older writes: use --limit or --since to show them
│ Sunday 2026-11-22
◆ 18:00:00 20h ago     10       create  helm
│ Monday 2026-11-23
● 12:00:00 2h ago      20       update  kubectl (ann)  spec.replicas, spec.paused, spec.template
┆ 1h48m without a write
● 13:48:00 12m ago     23       update  beat           3 times until 13:50:00: spec.renewTime
✕ 13:59:00 1m ago      30       delete  -
`
	if squeezed(got) != squeezed(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	line.Fold = false
	if got := strings.Count(line.Render("web", life(), false), "spec.renewTime"); got != 3 {
		t.Errorf("%d rows of what is not to be folded, want 3", got)
	}
}

// squeezed leaves out the bar, whose columns are counted elsewhere, and blanks in a row.
func squeezed(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.Contains(l, "█") {
			l = "bar"
		}
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return strings.Join(lines, "\n")
}

// TestDrawFits: no line is wider than the screen, in ASCII where there is no more.
func TestDrawFits(t *testing.T) {
	for _, width := range []int{70, 80, 120} {
		line := timeline.Options{Screen: screen.Screen{Width: width}, Now: now, Fold: true}
		list := life()
		list[4].ChangedFields = []string{strings.Repeat("spec.long.", 30) + "end", "spec.other"}
		for _, l := range strings.Split(line.Render("web", list, false), "\n") {
			if len(l) > width {
				t.Errorf("width %d: %d columns: %s", width, len(l), l)
			}
			for _, r := range l {
				if r > '~' {
					t.Errorf("%q is no ASCII", l)
				}
			}
		}
	}
}

// TestDrawHostile: names that clients choose cannot steer the terminal.
func TestDrawHostile(t *testing.T) {
	bad := write(1, time.Minute, "update", "\x1b]0;owned\x07", "a\x1b[2Jb\nc")
	bad.User = "\x1b[31m"
	got := (timeline.Options{Now: now}).Render("web", []revisions.Revision{bad}, false)
	if strings.ContainsAny(got, "\x1b\x07") || strings.Count(got, "\n") != 4 {
		t.Errorf("got %q", got)
	}
}
