//go:build unix

package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

const (
	inFlightBegins = 5 * time.Second        // within which a server usually begins to read a request
	inFlightRests  = 150 * time.Millisecond // between the signal and the rest of the request
	inFlightTime   = time.Minute
)

// inFlight is a request of which the server has begun to read the body, whose content is still to come.
type inFlight struct {
	begun chan struct{} // closed when the server asks for the body
	send  chan struct{} // closed to send the body
	sent  bool
	text  io.Reader
	done  chan error // why there is no answer; nil: there is one
	stop  context.CancelFunc
}

// Read implements io.Reader for the body. The client calls it once the server has asked for the body.
func (f *inFlight) Read(p []byte) (int, error) {
	if !f.sent {
		f.sent = true
		close(f.begun)
		<-f.send
	}
	return f.text.Read(p)
}

// newInFlight sends the head of a request to a server, which changes nothing. It returns nil if the server does not begin to read the body
// soon. Otherwise the caller must call answered.
func newInFlight(c *cluster.Cluster, i int) *inFlight {
	const body = `{"metadata":{"generateName":"in-flight-"}}`
	ctx, cancel := context.WithTimeout(context.Background(), inFlightTime)
	f := &inFlight{begun: make(chan struct{}), send: make(chan struct{}), text: strings.NewReader(body), done: make(chan error, 1), stop: cancel}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL(i)+"/api/v1/namespaces/default/configmaps?dryRun=All", f)
	if err != nil {
		cancel()
		return nil
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Expect", "100-continue")
	client := c.Client(cluster.HTTP1, false)
	client.Transport.(*http.Transport).ExpectContinueTimeout = inFlightTime // the body is sent only if the server asks for it
	go func() {
		resp, err := client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		client.CloseIdleConnections()
		f.done <- err
	}()
	late := time.NewTimer(inFlightBegins)
	defer late.Stop()
	select {
	case <-f.begun:
		return f
	case err := <-f.done: // without the body
		f.done <- err
	case <-late.C:
	}
	cancel()
	close(f.send)
	<-f.done
	return nil
}

// answered sends the rest of the request soon, meanwhile calls stop, and describes why the request is not answered; "": it is.
func (f *inFlight) answered(i int, stop func()) (wrong string) {
	if f == nil {
		stop()
		return ""
	}
	defer f.stop()
	timer := time.AfterFunc(inFlightRests, func() { close(f.send) })
	stop()
	if timer.Stop() { // the server has ended before
		close(f.send)
	}
	if err := <-f.done; err != nil {
		return fmt.Sprintf("server %d does not answer a request that it had begun to read before SIGTERM: %v", i, err)
	}
	return ""
}
