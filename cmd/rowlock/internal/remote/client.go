// Package remote is a client of another cluster's API server: discovery, all objects of a resource at one resource
// version, and single requests.
//
// The server is not trusted. Everything that it can cause has a bound: the bytes of an answer and of an object, how
// long an answer may pause and how long it may take, the number of retries and how long the server may ask to wait, the
// pages of a list, the number of resources, the bytes of all objects and the memory for their order. Exceeding a bound
// is an error that names it. Redirects are not followed, so that credentials stay with the server. Messages of a server
// are made printable before they become errors.
//
// A Client is safe for concurrent use, and starts no goroutine.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	sizes "github.com/rowlock/rowlock/codecs/budget"
)

// Config configures the server, and limits. Zero values take the named defaults.
type Config struct {
	URL     string        // of the server, with the path before /api
	HTTP    *http.Client  // identifies the user
	QPS     float64       // requests a second; 50
	Burst   int           // requests at once after a rest; 100
	Silence time.Duration // how long an answer may stall, and a server may make us wait; 1m
	Whole   time.Duration // how long one answer may take; 10m
	Answer  int64         // bytes of one answer; 1 GiB
	Object  int64         // bytes of one object; the largest that a server stores, and a MiB
	Total   int64         // bytes of all objects of a list, and of all that are collected; 64 GiB
	Page    int           // objects per page of a list; 500
	Pages   int           // of one list; a million
	Index   int64         // bytes of memory for the order of collected objects; 4 GiB
	Agent   string        // User-Agent
	// Sleep waits, for tests; nil: by the clock.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Client sends requests. Its methods return *StatusError for a refusal of the server, *BoundError for an
// answer beyond a limit, *MalformedError for an answer of the wrong form, and otherwise the error of the
// network.
type Client struct {
	cfg     Config
	http    *http.Client
	limiter *rate.Limiter
	reached atomic.Bool // the server has answered once: before that, nothing is tried again

	mu        sync.Mutex
	notBefore time.Time // from Retry-After; it delays all requests
}

// New makes a client. It fails for an invalid URL.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the server's URL cannot be parsed") // not repeated: it may have a password in it
	}
	cfg.URL = strings.TrimSuffix(cfg.URL, "/")
	cfg.QPS = cmp.Or(cfg.QPS, 50)
	cfg.Burst = cmp.Or(cfg.Burst, 100)
	cfg.Silence = cmp.Or(cfg.Silence, time.Minute)
	cfg.Whole = cmp.Or(cfg.Whole, 10*time.Minute)
	cfg.Answer = cmp.Or(cfg.Answer, 1<<30)
	cfg.Object = cmp.Or(cfg.Object, sizes.MostObject+1<<20)
	cfg.Total = cmp.Or(cfg.Total, 64<<30)
	cfg.Page = cmp.Or(cfg.Page, 500)
	cfg.Pages = cmp.Or(cfg.Pages, 1_000_000)
	cfg.Index = cmp.Or(cfg.Index, 4<<30)
	cfg.Agent = cmp.Or(cfg.Agent, "rowlock")
	if cfg.Sleep == nil {
		cfg.Sleep = Sleep
	}
	return &Client{cfg: cfg, http: WithoutRedirects(cmp.Or(cfg.HTTP, http.DefaultClient)), limiter: rate.NewLimiter(rate.Limit(cfg.QPS), cfg.Burst)}, nil
}

// WithoutRedirects returns a copy of a client that follows no redirects, so that credentials are not sent to the server that a
// redirect names.
func WithoutRedirects(c *http.Client) *http.Client {
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// Host returns the server's address, for messages.
func (c *Client) Host() string {
	u, err := url.Parse(c.cfg.URL)
	if err != nil {
		return "the server"
	}
	return u.Host
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is one request. It must be idempotent: the client repeats it until the server answers.
type Request struct {
	Method, Path string
	Query        url.Values
	Accept       string // default: application/json
	ContentType  string
	Body         []byte
}

// tries limits the attempts of a request.
const tries = 10

// open sends a request until the server answers it. The caller closes the answer.
func (c *Client) open(ctx context.Context, r Request) (*answer, error) {
	backoff := min(200*time.Millisecond, c.cfg.Silence)
	for try := 1; ; try++ {
		if err := c.turn(ctx); err != nil {
			return nil, err
		}
		a, err := c.once(ctx, r)
		if err == nil {
			return a, nil
		}
		var refused *StatusError
		wait := backoff
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &refused) && !refused.passing():
			return nil, err
		case errors.As(err, &refused):
			wait = max(wait, refused.RetryAfter)
		case !broken(err) || !c.reached.Load():
			return nil, err
		}
		if wait > c.cfg.Silence {
			return nil, &BoundError{Path: r.Path, Bound: fmt.Sprintf("the server asks to wait %s; more than %s is not waited", wait, c.cfg.Silence)}
		}
		if try == tries {
			return nil, fmt.Errorf("tried %d times: %w", tries, err)
		}
		if refused != nil && refused.RetryAfter > 0 {
			c.hold(wait)
		} else if err := c.cfg.Sleep(ctx, wait); err != nil {
			return nil, err
		}
		backoff = min(2*backoff, 5*time.Second, c.cfg.Silence)
	}
}

// hold delays all requests, as the server requested.
func (c *Client) hold(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(d); until.After(c.notBefore) {
		c.notBefore = until
	}
}

// turn waits until the next request may be sent.
func (c *Client) turn(ctx context.Context) error {
	c.mu.Lock()
	wait := time.Until(c.notBefore)
	c.mu.Unlock()
	if wait > 0 {
		if err := c.cfg.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	return c.limiter.Wait(ctx)
}

// once sends a request one time.
func (c *Client) once(ctx context.Context, r Request) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &answer{path: r.Path, cfg: &c.cfg, cancel: cancel, left: c.cfg.Answer}
	a.whole = time.AfterFunc(c.cfg.Whole, func() {
		cancel(&BoundError{Path: r.Path, Bound: fmt.Sprintf("the answer takes longer than %s", c.cfg.Whole)})
	})
	a.silent = time.AfterFunc(c.cfg.Silence, func() {
		cancel(&BoundError{Path: r.Path, Bound: fmt.Sprintf("the server has sent nothing for %s", c.cfg.Silence), passing: true})
	})
	address := c.cfg.URL + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, bytes.NewReader(r.Body))
	if err != nil {
		a.Close()
		return nil, plain(err)
	}
	req.Header.Set("Accept", cmp.Or(r.Accept, "application/json"))
	req.Header.Set("User-Agent", c.cfg.Agent)
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	resp, err := c.http.Do(req)
	a.silent.Stop()
	if err != nil {
		a.Close()
		return nil, a.cause(ctx, plain(err))
	}
	c.reached.Store(true)
	a.ctx, a.body, a.Header = ctx, resp.Body, resp.Header
	if resp.StatusCode/100 != 2 {
		defer a.Close()
		return nil, readStatus(a, resp)
	}
	return a, nil
}

// Do sends a request and reads the whole answer, which may be as large as an object.
func (c *Client) Do(ctx context.Context, r Request) ([]byte, error) {
	a, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	a.left = min(a.left, c.cfg.Object)
	return a.all()
}

// Sleep waits for d, or fails when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
