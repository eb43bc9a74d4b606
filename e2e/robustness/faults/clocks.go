//go:build unix

package faults

import (
	"context"
	"fmt"
	"strings"
	"time"
)

func clocks() []Fault {
	return []Fault{
		{Name: "clock", What: "the wall clock of a server, or of all, is set ahead or back by hours, up to three times, and then right", Often: 2, run: func(ctx context.Context, e *env) outcome {
			servers := []int{e.server()}
			o := outcome{server: servers[0], clock: true}
			if e.rand.IntN(3) == 0 && e.c.Len() > 1 {
				servers, o.server = nil, -1
				for i := range e.c.Len() {
					servers = append(servers, i)
				}
			}
			set := func(ahead time.Duration) {
				for _, i := range servers {
					if err := e.c.SetClock(i, ahead); err != nil && o.absent == nil {
						o.absent = err
					}
				}
			}
			var steps []string
			for range 1 + e.rand.IntN(3) {
				ahead := e.hours()
				if e.rand.IntN(2) == 0 {
					ahead = -ahead
				}
				if set(ahead); o.absent != nil {
					break
				}
				d := e.wait(ctx, 500*time.Millisecond, 5*time.Second)
				steps = append(steps, fmt.Sprintf("by %s for %s", ahead, d.Round(time.Millisecond)))
			}
			set(0)
			who := fmt.Sprintf("the clock of server %d", o.server)
			if o.server < 0 {
				who = "the clocks of all servers"
			}
			o.what = fmt.Sprintf("%s: %s", who, strings.Join(steps, ", "))
			return o
		}},
		{Name: "clock-restart", What: "the wall clock of a server is set back by hours, while it runs or before it starts, and is right when the server is killed and started again", Cuts: true, Often: 3, run: func(ctx context.Context, e *env) outcome {
			i, back, how := e.server(), -e.hours(), "is set"
			o := outcome{server: i, clock: true}
			if e.rand.IntN(3) == 0 {
				how = "starts"
				e.c.Kill(i)
				o.absent, o.err = e.c.StartServerAt(context.WithoutCancel(ctx), i, back)
			} else {
				o.cut = e.rec.Now()
				o.absent = e.c.SetClock(i, back)
			}
			if o.err != nil {
				return o
			}
			d := e.wait(ctx, 500*time.Millisecond, 4*time.Second)
			o.what = fmt.Sprintf("server %d %s with a clock that is wrong by %s for %s, and is started again", i, how, back, d.Round(time.Millisecond))
			if o.absent == nil && o.cut != 0 {
				o.cut, o.absent = e.rec.Now(), e.c.SetClock(i, 0)
			}
			e.c.Kill(i)
			o.err = e.again(i)
			return o
		}},
	}
}

// hours is by how much a clock is wrong.
func (e *env) hours() time.Duration { return time.Duration(2+e.rand.IntN(47)) * time.Hour }
