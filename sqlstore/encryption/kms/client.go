package kms

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/rowlock/rowlock/sqlstore"
)

const (
	// maxAnswer bounds a plugin's answer: annotations of 32 KB and some more.
	maxAnswer = 128 << 10
	// maxHeaders bounds the text of its errors, of which maxText are shown.
	maxHeaders = 16 << 10
	maxText    = 256
	// maxCalls bounds the concurrent calls of one plugin; others wait.
	maxCalls = 32
	// pause is the time for which calls fail immediately after a plugin has not answered.
	pause = time.Second
	// maxPause bounds how long after its return a plugin is noticed.
	maxPause = 3 * time.Second
)

// Error is a plugin's error, or that it did not answer.
type Error struct {
	Provider string
	Method   string
	Code     codes.Code
	Text     string // its own words, which are cut
}

// Error is formatted as in the messages of a stock server. Callers add the name of the provider.
func (e *Error) Error() string { return fmt.Sprintf("rpc error: code = %s desc = %s", e.Code, e.Text) }

// GRPCStatus is for stock metrics.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Text) }

// Is: a plugin that did not answer may do so later, ErrKeyUnavailable.
func (e *Error) Is(target error) bool { return target == sqlstore.ErrKeyUnavailable && e.absent() }

func (e *Error) absent() bool {
	switch e.Code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted:
		return true
	}
	return false
}

// clip makes foreign text fit for a line of a log.
func clip(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

// line is the connection to a plugin. Its goroutines are those of the connection, which close ends.
type line struct {
	name    string
	timeout time.Duration
	metrics *Metrics
	conn    *grpc.ClientConn
	places  chan struct{}
	silent  atomic.Pointer[noAnswer]
}

// noAnswer is that a plugin did not answer.
type noAnswer struct {
	until time.Time
	err   *Error
}

func dial(cfg Config) (*line, error) {
	path, err := socket(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	l := &line{name: cfg.Name, timeout: cfg.Timeout, metrics: cfg.Metrics, places: make(chan struct{}, maxCalls)}
	l.conn, err = grpc.NewClient("passthrough:///"+cfg.Name,
		grpc.WithAuthority("localhost"), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxPause}, MinConnectTimeout: maxPause,
		}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}),
		grpc.WithUnaryInterceptor(l.intercept),
	)
	if err != nil {
		return nil, fmt.Errorf("failed to create connection to %s, error: %w", cfg.Endpoint, err)
	}
	return l, nil
}

// socket returns the path in an endpoint; a name that begins with @ is not a file.
func socket(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("invalid endpoint %q for remote KMS provider, error: %w", endpoint, err)
	}
	if u.Scheme != "unix" {
		return "", fmt.Errorf("unsupported scheme %q for remote KMS provider", u.Scheme)
	}
	if strings.HasPrefix(u.Path, "/@") {
		return u.Path[1:], nil
	}
	return u.Path, nil
}

func (l *line) close() error { return l.conn.Close() }

// intercept applies to every call: its place, its timeout, its metrics.
func (l *line) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	asks := strings.HasSuffix(method, "/Status") || strings.HasSuffix(method, "/Version")
	limited, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	began := time.Now()
	if err := l.recentFailure(asks); err != nil {
		return err
	}
	var err error
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }() // after the result is known to the next caller
		if err := l.recentFailure(asks); err != nil {
			return err
		}
		err = invoke(limited, method, req, reply, cc, opts...)
	case <-limited.Done():
		err = status.Error(codes.DeadlineExceeded, "no call of this provider ended in time")
	}
	if ctx.Err() != nil {
		return ctx.Err() // nothing is known of the plugin
	}
	if err == nil {
		l.silent.Store(nil)
		l.metrics.called(l.name, method, codes.OK, time.Since(began))
		return nil
	}
	failure := &Error{Provider: l.name, Method: method, Code: status.Code(err), Text: clip(status.Convert(err).Message())}
	if failure.absent() {
		l.silent.Store(&noAnswer{time.Now().Add(pause), failure})
	}
	l.metrics.called(l.name, method, failure.Code, time.Since(began))
	return failure
}

// recentFailure returns why a call is not made: the previous caller has just waited in vain. Health checks are made
// nevertheless.
func (l *line) recentFailure(asks bool) error {
	if s := l.silent.Load(); s != nil && !asks && time.Now().Before(s.until) {
		return s.err
	}
	return nil
}
