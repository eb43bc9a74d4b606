package filters

import (
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/rowlock/rowlock/server/conns"
	"github.com/rowlock/rowlock/server/request"
)

// AuditID is the header that names a request, ours or the client's.
const AuditID = "Audit-Id"

// maxAuditID is the longest name that a client may give its request.
const maxAuditID = 64

// Scope parses what the request asks for, names it, and gives it the scope that
// all filters behind it share. It is the outermost filter but Recover.
func Scope(now func() time.Time) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := &Recorder{ResponseWriter: w, conn: conns.Of(r.Context()), http2: r.ProtoMajor == 2}
			defer rec.done()
			h := w.Header()
			s := request.NewScope(h, now())
			if s.ID = r.Header.Get(AuditID); s.ID == "" || len(s.ID) > maxAuditID {
				s.ID = uuid.NewString()
			}
			h.Set(AuditID, s.ID)
			h.Set("Cache-Control", "no-cache, private")
			info, err := request.Parse(r.Method, r.URL)
			if err != nil {
				internal(rec, r, fmt.Errorf("failed to create RequestInfo: %w", err))
				return
			}
			s.Info = info
			next.ServeHTTP(rec, r.WithContext(request.With(r.Context(), s)))
		})
	}
}
