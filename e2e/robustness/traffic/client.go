//go:build unix

package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// requestTime bounds how long a client waits for an answer.
const requestTime = judge.AnswerTime

// client is one of many, with connections of its own.
type client struct {
	*Traffic
	name     string
	http     *http.Client
	proto    cluster.Protocol
	rand     *rand.Rand
	server   int // for those that go to the servers in turn
	token    string
	as       string   // the user that it impersonates; "": none
	groups   []string // of that user
	uid      string   // of that user; "": none is named
	pretends bool     // it sends the headers in claimed
	form     history.Form
	gzip     bool              // it accepts compressed answers
	loose    bool              // a change takes effect some time after it was acknowledged, also at that server
	answered int               // the server that answered must last
	accept   string            // the Accept header; "": that of form
	tag      string            // of an answer that need not come again; "": none
	tags     map[string]tagged // the last answers with tags
	silent   int               // how many creates of must had no answer: they may be done later
}

func (t *Traffic) client(name string, p cluster.Protocol, small bool) *client {
	h := uint64(1469598103934665603)
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	c := &client{Traffic: t, name: name, http: t.c.Client(p, small), proto: p, rand: rand.New(rand.NewPCG(t.seed+uint64(t.round), h)), token: harness.AdminToken}
	c.server = c.rand.IntN(t.c.Len())
	return c
}

func (c *client) next() int {
	c.server = (c.server + 1) % c.c.Len()
	return c.server
}

func (c *client) any() int { return c.rand.IntN(c.c.Len()) }

// send sends a request and reads the answer.
func (c *client) send(ctx context.Context, server int, method, path, contentType, body string) (code int, answer []byte, err error) {
	code, _, answer, err = c.exchange(ctx, server, method, path, contentType, body)
	return code, answer, err
}

// exchange is send, and returns the headers of the answer, too.
func (c *client) exchange(ctx context.Context, server int, method, path, contentType, body string) (code int, header http.Header, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	resp, err := c.open(ctx, server, method, path, contentType, body)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		return resp.StatusCode, resp.Header, answer, err
	}
	if answer, err = c.plain(resp.Header, path, answer); err != nil {
		return resp.StatusCode, resp.Header, nil, err
	}
	return resp.StatusCode, resp.Header, c.readable(resp.Header.Get("Content-Type"), path, answer), nil
}

func (c *client) open(ctx context.Context, server int, method, path, contentType, body string) (*http.Response, error) {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.c.URL(server)+path, r)
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // a request whose answer was lost is not sent again
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.as != "" {
		req.Header.Set("Impersonate-User", c.as)
		for _, group := range c.groups {
			req.Header.Add("Impersonate-Group", group)
		}
		if c.uid != "" {
			req.Header.Set("Impersonate-Uid", c.uid)
		}
	}
	if c.pretends {
		maps.Copy(req.Header, claimed)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if id, ok := ctx.Value(auditID{}).(string); ok {
		req.Header.Set("Audit-ID", id)
	}
	if accept := cmp.Or(c.accept, accepted(c.form, method, path)); accept != "" {
		req.Header.Set("Accept", accept)
	}
	if c.tag != "" {
		req.Header.Set("If-None-Match", c.tag)
	}
	if c.gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	var sent atomic.Bool
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}))
	resp, err := c.http.Do(req)
	if err != nil && !sent.Load() {
		err = &unsentError{err}
	}
	return resp, err
}

// unsentError is why a request found no connection. Nothing of it was sent.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// outcome is the outcome that a code and an answer show. An answer of 504 or 500 leaves it open; 503 and 429 mean that nothing was done.
func outcome(code int, answer []byte, err error) history.Outcome {
	var unsent *unsentError
	switch {
	case err != nil && errors.As(err, &unsent):
		return history.Refused
	case err != nil:
		return history.Unknown
	case code >= 200 && code < 300:
		return history.OK
	case code == http.StatusConflict:
		var s struct{ Reason string }
		if json.Unmarshal(answer, &s) == nil && s.Reason == "AlreadyExists" {
			return history.Exists
		}
		return history.Conflict
	case code == http.StatusNotFound:
		return history.NotFound
	case code == http.StatusGone:
		return history.Expired
	case code == http.StatusForbidden || code == http.StatusUnauthorized:
		return history.Denied
	case code >= 400 && code < 500 || code == http.StatusServiceUnavailable:
		return history.Refused
	}
	return history.Unknown
}

// do carries an operation out and records it. It returns the operation with its outcome.
func (c *client) do(op *history.Op, method, path, contentType, body string) *history.Op {
	return c.record(op, method, path, contentType, body, func(answer []byte) (*history.State, error) {
		item, err := c.parsed.Parse(answer)
		if err != nil {
			return nil, err
		}
		return &item.State, nil
	})
}

// record is do for answers that another function reads.
func (c *client) record(op *history.Op, method, path, contentType, body string, read func([]byte) (*history.State, error)) *history.Op {
	if op.ID == "" {
		op.ID = c.rec.ID()
	}
	if contentType == plainJSON && (method == http.MethodPost || method == http.MethodPut) {
		contentType, body = encoded(c.form, body)
	}
	op.Client, op.Audit, op.Call = c.name, c.audited(op), c.rec.Now()
	op.AuditEnd = op.Audit != "" && op.Key.Resource == pods.resource
	code, answer, err := c.send(withAuditID(context.Background(), op.ID), op.Server, method, path, contentType, body)
	op.Return, op.Code, op.Outcome = c.rec.Now(), code, outcome(code, answer, err)
	if err != nil {
		op.Error = err.Error()
	} else if op.Outcome != history.OK {
		op.Error = message(answer)
	}
	if op.Outcome == history.OK && !op.Dry && shows(op.Kind) {
		if op.Got, err = read(answer); err != nil {
			op.Outcome, op.Error = history.Unknown, err.Error()
			c.rec.Stuck(fmt.Sprintf("an answer is no object: %s", op))
		} else {
			c.saw(op.Got.Version)
		}
	}
	c.rec.Add(op)
	return op
}

// shows reports whether the answer to an operation is the object as it is then.
func shows(kind string) bool {
	switch kind {
	case history.Delete, history.DeleteCollection, history.Mark, history.Release, history.Renew, history.Vacate, history.Bind:
		return false
	}
	return true
}

func message(answer []byte) string {
	var s struct{ Message string }
	if json.Unmarshal(answer, &s) != nil || s.Message == "" {
		return fmt.Sprintf("%.200s", answer)
	}
	return fmt.Sprintf("%.300s", s.Message)
}

// sleep waits for d, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// rest waits until the client's next request.
func (c *client) rest(ctx context.Context) {
	sleep(ctx, time.Duration(c.rand.Float64()*2*float64(c.pace)))
}
