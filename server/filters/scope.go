package filters

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/wire"
)

// AuditID is the header that names a request, ours or the client's.
const AuditID = "Audit-Id"

// maxAuditID is the longest name that a client may give its request.
const maxAuditID = 64

// notCached is a header's value, shared by all answers.
var notCached = []string{"no-cache, private"}

// newID makes the ID of a request. It is no secret, so it need not be random enough for one.
func newID() string {
	var id uuid.UUID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40 // version 4: random
	id[8] = id[8]&0x3f | 0x80 // RFC 9562
	return id.String()
}

// Scope parses what the request asks for, names it, and gives it the scope that
// all filters behind it share. It is the outermost filter but Recover.
func Scope(now func() time.Time) Filter {
	reading := fair.NewGate(fair.Limits{Places: 1})
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := &Recorder{ResponseWriter: w, conn: wire.From(r.Context()), http2: r.ProtoMajor == 2}
			var ends func()
			defer func() {
				if ends != nil {
					ends()
				}
			}()
			defer rec.returned()
			if !rec.http2 && r.Body != nil && r.Body != http.NoBody {
				rec.body = &sent{ReadCloser: r.Body}
				r = r.WithContext(r.Context()) // package net/http looks at its own later
				r.Body = rec.body
			}
			h := w.Header()
			if len(r.TransferEncoding) > 0 {
				// The request may also have had a Content-Length, which package net/http removes. A proxy
				// that relied on it takes the rest for a part of this request, so the rest must not be
				// answered (RFC 9112, 6.3).
				h["Connection"] = []string{"close"}
			}
			s := request.NewScope(h, now())
			s.AllowDetach()
			rec.scope = s
			if s.ID = r.Header.Get(AuditID); s.ID == "" || len(s.ID) > maxAuditID {
				s.ID = newID()
			}
			h[AuditID] = []string{s.ID}
			h["Cache-Control"] = notCached
			info, err := parse(r, reading)
			if err != nil {
				internal(rec, r, fmt.Errorf("failed to create RequestInfo: %w", err))
				return
			}
			s.Info = info
			if conn, ok := rec.conn.(wire.WatchConn); ok && info.Verb == "watch" {
				rec.ResponseWriter, r, ends = conn.BeginWatch(w, r)
			}
			ctx := r.Context()
			if !rec.http2 && rec.ResponseWriter == w && LongRunning(info) && r.Header["Upgrade"] == nil {
				var stop func()
				ctx, stop = wire.UntilClosed(ctx)
				defer stop()
			}
			next.ServeHTTP(rec, r.WithContext(request.With(ctx, s)))
		})
	}
}

// parse reads what a request asks for. Of long ones, which take milliseconds, one is read at a time, connections in turn: a
// flood of them leaves processors to others, and one connection does not delay the others. A request does not wait once its
// client has gone, so that no more of them are in memory than their connections may have.
func parse(r *http.Request, reading *fair.Gate) (*request.Info, error) {
	if len(r.URL.Path)+len(r.URL.RawQuery) >= longSelector {
		place, err := reading.Enter(r.Context(), r.RemoteAddr, 0)
		if err != nil {
			return nil, err
		}
		defer place.Leave()
	}
	return request.Parse(r.Method, r.URL)
}
