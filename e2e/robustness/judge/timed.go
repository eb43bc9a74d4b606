package judge

import (
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// lateEnd is by how much longer than it asked for a watch may last.
const lateEnd = 5 * time.Second

// timed checks how a watch ends that nothing touched, and that its client reads at once: after the time that it asked for, and after a
// bookmark, from which its client can resume, if it asked for bookmarks.
func (j *judge) timed(s *history.Stream) {
	marked := slices.IndexFunc(s.Events, func(e history.Event) bool { return e.Type == "BOOKMARK" && !e.Ends })
	if s.Unmarked && marked >= 0 {
		j.violate("watch-timed", around(s, marked), "a bookmark comes to a watch that did not ask for bookmarks")
	}
	if s.Seconds == 0 || s.Slow || j.away(touched, s.Server).within(s.Begun, s.End) > 0 {
		return
	}
	asked, lasted := time.Duration(s.Seconds)*time.Second, s.End-s.Begun
	if lasted > asked+lateEnd {
		j.judged("watch-timed")
		j.violate("watch-timed", around(s, len(s.Events)), "a watch that asked for %s goes on after %s", asked, lasted.Round(time.Millisecond))
		return
	}
	if !s.Over || lasted < asked-time.Second { // such as one that its server ends
		return
	}
	j.judged("watch-timed")
	if marked < 0 && !s.Unmarked {
		j.violate("watch-timed", around(s, len(s.Events)), "a watch that asked for bookmarks ends after %s without one", lasted.Round(time.Millisecond))
	}
}

// served checks the version of the objects in the events of a watch.
func (j *judge) served(s *history.Stream) {
	if s.Served == "" {
		return
	}
	j.judged("served")
	for i := range s.Events {
		switch e := &s.Events[i]; e.Type {
		case "ADDED", "MODIFIED", "DELETED", "BOOKMARK":
			if e.Item.Served != s.Served {
				j.violate("served", around(s, i), "a watch of objects of %s has one of %q", s.Served, e.Item.Served)
			}
		}
	}
}
