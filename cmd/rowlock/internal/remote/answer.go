package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusError is the server's refusal of a request.
type StatusError struct {
	Path       string
	Code       int
	Reason     metav1.StatusReason
	Message    string // printable, of bounded length
	Causes     []metav1.StatusCause
	RetryAfter time.Duration // 0: absent
}

func (e *StatusError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Message) }

// passing reports whether the same request may succeed later.
func (e *StatusError) passing() bool {
	switch e.Code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Is reports whether an error is a refusal with a status code.
func Is(err error, code int) bool {
	var refused *StatusError
	return errors.As(err, &refused) && refused.Code == code
}

// BoundError: an answer exceeds a bound.
type BoundError struct {
	Path    string
	Bound   string // which, for people
	passing bool
}

func (e *BoundError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Bound) }

// MalformedError: an answer is not of the requested kind.
type MalformedError struct {
	Path, What string
	Err        error // may be nil
}

func (e *MalformedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: the server's answer makes no sense: %s: %v", e.Path, e.What, e.Err)
	}
	return fmt.Sprintf("%s: the server's answer makes no sense: %s", e.Path, e.What)
}

func (e *MalformedError) Unwrap() error { return e.Err }

// broken reports whether an error is of the connection, or of a silent server, so that a retry may succeed.
func broken(err error) bool {
	if bound, ok := errors.AsType[*BoundError](err); ok {
		return bound.passing
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		strings.HasPrefix(err.Error(), "http2:") || strings.HasPrefix(err.Error(), "stream error:") // net/http has no types for these
}

// plain strips the URL from an error of net/http: the other errors have the path, and the URL may contain a
// password.
func plain(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// answer is a body that is being read. Read returns a BoundError if the server sends too much, or too slowly.
type answer struct {
	Header http.Header

	ctx           context.Context
	path          string
	cfg           *Config
	cancel        context.CancelCauseFunc
	body          io.ReadCloser
	left          int64
	whole, silent *time.Timer
}

func (a *answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, &BoundError{Path: a.path, Bound: "the answer is larger than any may be"}
	}
	if int64(len(p)) > a.left {
		p = p[:a.left]
	}
	a.silent.Reset(a.cfg.Silence)
	n, err := a.body.Read(p)
	a.silent.Stop()
	a.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.cause(a.ctx, err)
	}
	return n, err
}

// cause returns the BoundError that ended a request, if there is one, else err.
func (a *answer) cause(ctx context.Context, err error) error {
	if bound, ok := errors.AsType[*BoundError](context.Cause(ctx)); ok {
		return bound
	}
	return err
}

func (a *answer) all() ([]byte, error) {
	data, err := io.ReadAll(a)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Close ends the request.
func (a *answer) Close() {
	a.whole.Stop()
	a.silent.Stop()
	if a.body != nil {
		_ = a.body.Close() // nothing more is wanted of it
	}
	a.cancel(nil)
}

// maxStatus limits the bytes read of a refusal.
const maxStatus = 256 << 10

func readStatus(a *answer, resp *http.Response) error {
	a.left = min(a.left, maxStatus)
	data, _ := a.all() // the part that could be read
	e := &StatusError{Path: a.path, Code: resp.StatusCode, Message: Printable(resp.Status), RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	var status metav1.Status
	if json.Unmarshal(data, &status) == nil && status.Message != "" {
		e.Reason, e.Message = status.Reason, Printable(status.Message)
		if d := status.Details; d != nil {
			e.Causes = d.Causes
			e.RetryAfter = max(e.RetryAfter, time.Duration(d.RetryAfterSeconds)*time.Second)
		}
	}
	return e
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// maxMessage limits the bytes quoted of a server's message.
const maxMessage = 2000

// Printable returns a text of a server made safe for a terminal.
func Printable(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
