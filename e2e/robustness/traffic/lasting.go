//go:build unix

package traffic

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// lastingTime is how long a watch lasts at most that has to end before its time.
const lastingTime = 2 * time.Minute

// lasting is a watch at one server, which has to end when its resource is not served any more.
type lasting struct {
	server int
	begun  atomic.Int64 // when its answer began, by the recorder; 0: it has not
	ended  atomic.Int64 // when it ended; 0: it goes on
	stop   context.CancelFunc
	done   chan struct{}
}

// last begins a watch at each server. The caller must call end for each.
func (c *client) last(ctx context.Context, path string) (all []*lasting) {
	for server := range c.c.Len() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), lastingTime)
		l := &lasting{server: server, stop: stop, done: make(chan struct{})}
		all = append(all, l)
		go func() {
			defer close(l.done)
			resp, err := c.open(ctx, server, http.MethodGet, fmt.Sprintf("%s?watch=1&timeoutSeconds=%d", path, int(lastingTime.Seconds())), "", "")
			if err == nil {
				l.begun.Store(int64(c.rec.Now()))
				_, _ = io.Copy(io.Discard, resp.Body) // to its end, whatever that is
				resp.Body.Close()
			}
			l.ended.Store(int64(c.rec.Now()))
		}()
	}
	return all
}

// end ends the watch, and waits for that.
func (l *lasting) end() {
	l.stop()
	<-l.done
}

// lastUntil records for each watch that had begun before a request whether it ends in time after the effect of that. It also waits after
// the traffic of the round has ended.
func (c *client) lastUntil(ctx context.Context, all []*lasting, what string, request, effect time.Duration) {
	all = slices.DeleteFunc(slices.Clone(all), func(l *lasting) bool {
		begun := time.Duration(l.begun.Load())
		return begun == 0 || begun > request // it may be a watch of what came later
	})
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), patientTime)
	defer cancel()
	goesOn := func(l *lasting) bool { return l.ended.Load() == 0 }
	for over := time.Duration(0); slices.ContainsFunc(all, goesOn) && patient.Err() == nil && (over == 0 || c.rec.Now() < over+judge.RightsTime+duePatience); c.rest(patient) {
		if ctx.Err() != nil && over == 0 {
			over = c.rec.Now()
		}
	}
	for _, l := range all {
		due := &history.Due{Property: "served", What: what, Server: l.server, Alone: true, Within: judge.RightsTime, Cause: effect, Until: c.rec.Now()}
		if at := time.Duration(l.ended.Load()); at != 0 {
			due.Came = max(at, effect)
			due.Until = due.Came
		}
		c.rec.Add(due)
	}
}
