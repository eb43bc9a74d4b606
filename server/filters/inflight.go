package filters

import (
	"net/http"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
)

// InFlight bounds how many requests run at once, those that write and those that
// read apart. Long-running requests do not count, and system:masters is never
// refused. A limit of 0 is no limit.
type InFlight struct {
	read, write chan struct{}
	// Observe is told how many requests of a sort ("readOnly", "mutating") run. May be nil.
	Observe func(sort string, n int)
	// Refused is told of each refusal. May be nil.
	Refused func(sort string)
}

// NewInFlight makes the limits of --max-requests-inflight and
// --max-mutating-requests-inflight.
func NewInFlight(read, write int) *InFlight {
	f := &InFlight{}
	if read > 0 {
		f.read = make(chan struct{}, read)
	}
	if write > 0 {
		f.write = make(chan struct{}, write)
	}
	return f
}

// Filter is the filter.
func (f *InFlight) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := request.From(r.Context())
		if LongRunning(s.Info) {
			next.ServeHTTP(w, r)
			return
		}
		slots, sort := f.write, "mutating"
		switch s.Info.Verb {
		case "get", "list", "watch", "head":
			slots, sort = f.read, "readOnly"
		}
		if slots == nil {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case slots <- struct{}{}:
			if f.Observe != nil {
				f.Observe(sort, len(slots))
			}
			defer func() {
				<-slots
				if f.Observe != nil {
					f.Observe(sort, len(slots))
				}
			}()
			next.ServeHTTP(w, r)
		default:
			if s.User != nil && s.User.InGroup(authx.GroupMasters) {
				next.ServeHTTP(w, r)
				return
			}
			if f.Refused != nil {
				f.Refused(sort)
			}
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		}
	})
}
