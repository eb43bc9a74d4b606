//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

// givenUp is when a client gives up requests: while the first ones run, and the others wait.
const givenUp = floodHolds * 3 / 4

// giveUp sends requests, and gives up those that run or wait after some time, which a server learns at once by HTTP/2. A later request
// must get a seat.
func (f *flood) giveUp(ctx context.Context) {
	const quick, slow = http.MethodGet, http.MethodPost
	quitter := f.Traffic.client(f.client.name+"-quitter", cluster.HTTP2, false)
	defer quitter.http.CloseIdleConnections()
	quitter.as, quitter.groups = f.user, f.mouse.groups
	quitter.classify(ctx, f.server, quick, floodedPath+"/kept", "") // so that it has a connection
	var all sync.WaitGroup
	for range floodSize {
		all.Go(func() {
			quitter.classifyFor(ctx, givenUp, f.server, slow, floodedPath+"?dryRun=All", `{"metadata":{"generateName":"given-up-"}}`)
		})
	}
	all.Wait()
	sleep(ctx, 2*floodHolds)
	f.dam.forget(f.user)
	call := f.rec.Now()
	a := f.flooder.classify(ctx, f.server, quick, floodedPath+"/kept", "")
	check := f.check("a request after others of its level that their client has given up", call)
	check.Seen = append(check.Seen, fmt.Sprintf("%d %v after %s, of schema %s: %s", a.code, a.err, a.took.Round(time.Millisecond), a.schema, a.text))
	switch {
	case a.code == http.StatusTooManyRequests:
		check.Wrong = "it is refused"
	case a.took > mouseTime:
		check.Wrong = fmt.Sprintf("it takes more than %s", mouseTime)
	}
	f.rec.Add(check)
}
