package rowlocktest

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/http"
	"strings"
	"time"
)

// CloseWatch ends each watch after some events, bookmarks included, as a server does that has
// had enough of it.
func CloseWatch(after int) Effect {
	return Effect{name: "CloseWatch", serve: func(w http.ResponseWriter, r *http.Request, next http.Handler, _ <-chan struct{}) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		e := &events{ResponseWriter: w}
		left := after
		e.pass = func([]byte) bool {
			left--
			return left >= 0
		}
		e.ended = cancel
		if after == 0 {
			cancel()
		}
		next.ServeHTTP(e, r.WithContext(ctx))
	}}
}

// SlowWatch keeps each event of a watch back for a while, by the real clock, or until the
// rule is removed.
func SlowWatch(each time.Duration) Effect {
	return Effect{name: "SlowWatch", serve: func(w http.ResponseWriter, r *http.Request, next http.Handler, removed <-chan struct{}) {
		e := &events{ResponseWriter: w, ended: func() {}}
		e.pass = func([]byte) bool {
			timer := time.NewTimer(each)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-removed:
			case <-r.Context().Done():
			}
			return true
		}
		next.ServeHTTP(e, r)
	}}
}

// events is an answer to a watch, which it takes apart into events.
type events struct {
	http.ResponseWriter
	pass  func(frame []byte) bool // false: that is all
	ended func()
	part  []byte // of an incomplete event
	over  bool
}

// Unwrap serves http.ResponseController.
func (e *events) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// Write implements io.Writer.
func (e *events) Write(p []byte) (int, error) {
	e.part = append(e.part, p...)
	for !e.over {
		n := e.frame()
		if n == 0 {
			return len(p), nil
		}
		if !e.pass(e.part[:n]) {
			e.over = true
			e.ended()
			break
		}
		if _, err := e.ResponseWriter.Write(e.part[:n]); err != nil {
			return 0, err
		}
		_ = http.NewResponseController(e.ResponseWriter).Flush() // the next write fails if the client has gone
		e.part = e.part[n:]
	}
	e.part = nil
	return len(p), nil
}

// frame returns how long the first event is; 0: it is not whole.
func (e *events) frame() int {
	if strings.Contains(e.Header().Get("Content-Type"), "protobuf") {
		if len(e.part) < 4 {
			return 0
		}
		if n := 4 + int(binary.BigEndian.Uint32(e.part)); n <= len(e.part) {
			return n
		}
		return 0
	}
	return bytes.IndexByte(e.part, '\n') + 1
}
