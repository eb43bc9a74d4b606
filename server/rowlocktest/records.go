package rowlocktest

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// Request is a client's request and its result.
type Request struct {
	At        time.Time // of its arrival, by the server's clock
	Verb      string
	Group     string
	Resource  string // with its subresource: "pods/status"
	Namespace string
	Name      string
	User      string
	Agent     string
	DryRun    bool
	Code      int    // 0: the client was not answered
	Reason    string // of a failure
	// Changed are the changes of a write, one text a field: `spec.replicas: 1 → 2`. Times, generations and
	// managed fields are omitted.
	Changed  []string
	Revision int64 // of the write; 0: nothing was written
}

// Recording holds the requests of clients since Record.
type Recording struct {
	of   *records
	only func(*Request) bool

	mu   sync.Mutex
	list []Request
}

// records are the recordings of a server.
type records struct {
	mu   sync.Mutex
	list []*Recording
}

// Record records the requests for resources that only selects, from now on until Stop; nil: all. It omits those of the
// server's own controllers.
func (s *Server) Record(only func(*Request) bool) *Recording {
	r := &Recording{of: s.records, only: only}
	s.records.mu.Lock()
	defer s.records.mu.Unlock()
	s.records.list = append(s.records.list, r)
	return r
}

// Writes makes Record omit reads.
func Writes(r *Request) bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// By is for Record: the requests of agents whose name begins so.
func By(agent string) func(*Request) bool {
	return func(r *Request) bool { return strings.HasPrefix(r.Agent, agent) }
}

// Stop ends the recording.
func (r *Recording) Stop() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.list = slices.DeleteFunc(slices.Clone(r.of.list), func(o *Recording) bool { return o == r })
}

// Requests returns the requests so far, in the order in which they ended.
func (r *Recording) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// String returns the recording as a table.
func (r *Recording) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VERB\tRESOURCE\tOBJECT\tAGENT\tANSWER\tCHANGED")
	for _, q := range r.Requests() {
		object := strings.TrimPrefix(q.Namespace+"/"+q.Name, "/")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", q.Verb, q.Resource, object, q.Agent, q.answer(), cut(strings.Join(q.Changed, ", "), maxShown))
	}
	_ = w.Flush() // a strings.Builder takes everything
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// maxShown is the maximum length of a line about changes.
const maxShown = 160

func (q *Request) answer() string {
	switch {
	case q.Code == 0:
		return "lost"
	case q.Reason != "":
		return strconv.Itoa(q.Code) + " " + q.Reason
	case q.DryRun:
		return strconv.Itoa(q.Code) + " dry run"
	}
	return strconv.Itoa(q.Code)
}

func (k *records) current() []*Recording {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list
}

// filter records the requests of clients.
func (k *records) filter(s *Server) filters.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			to := k.current()
			if len(to) == 0 || !request.From(r.Context()).Info.IsResource {
				next.ServeHTTP(w, r)
				return
			}
			k.note(s, to, next, w, r)
		})
	}
}

// note serves a request and records its result, however it ends.
func (k *records) note(s *Server, to []*Recording, next http.Handler, w http.ResponseWriter, r *http.Request) {
	scope := request.From(r.Context())
	info := scope.Info
	q := Request{
		At: s.clock.Now(), Verb: info.Verb, Group: info.Group, Resource: info.Resource, Namespace: info.Namespace, Name: nameOf(info, r),
		Agent: r.UserAgent(), DryRun: len(info.Query["dryRun"]) > 0,
	}
	if info.Subresource != "" {
		q.Resource += "/" + info.Subresource
	}
	if scope.User != nil {
		q.User = scope.User.Name
	}
	e := &echo{ResponseWriter: w, keep: Writes(&q)}
	before := s.Revision()
	defer func() {
		if p := recover(); p != nil {
			defer panic(p)
		}
		q.Code = e.code
		e.read(&q)
		if e.keep && !q.DryRun {
			s.explain(&q, before, e)
		}
		for _, r := range to {
			r.add(q)
		}
	}()
	next.ServeHTTP(e, r)
}

func (r *Recording) add(q Request) {
	if r.only != nil && !r.only(&q) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, q)
}

// echo is an answer whose beginning is recorded.
type echo struct {
	http.ResponseWriter
	keep bool // also if it did not fail
	code int
	body bytes.Buffer
	// revision is that of the object in the answer; 0 if there is none.
	revision int64
}

// maxEchoed limits the recorded part of an answer: the largest object.
const maxEchoed = budget.MostObject + 1<<20

// Unwrap serves http.ResponseController.
func (e *echo) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (e *echo) WriteHeader(code int) {
	if e.code == 0 {
		e.code = code
	}
	e.ResponseWriter.WriteHeader(code)
}

// Write implements io.Writer.
func (e *echo) Write(p []byte) (int, error) {
	if e.code == 0 {
		e.code = http.StatusOK
	}
	if e.keep || e.code >= http.StatusBadRequest {
		e.body.Write(p[:min(len(p), maxEchoed-e.body.Len())])
	}
	return e.ResponseWriter.Write(p)
}

// read takes from the answer why it failed, or which object it is.
func (e *echo) read(q *Request) {
	meta, status := metaOf(e.body.Bytes())
	switch {
	case e.code >= http.StatusBadRequest && status.Reason != "":
		q.Reason = string(status.Reason)
	case e.code >= http.StatusBadRequest:
		q.Reason = http.StatusText(e.code)
	case q.Name == "" && q.Verb == "create":
		q.Name = meta.Name
	}
	e.revision, _ = strconv.ParseInt(meta.ResourceVersion, 10, 64) // 0 where there is none
}

// explain finds the changes of a write in the log: by the revision in its answer or, if the answer was lost
// or has none, the first change of the object since the write began.
func (s *Server) explain(q *Request, before int64, e *echo) {
	res, sub, _ := strings.Cut(q.Resource, "/")
	named := e.revision
	if e.code >= http.StatusBadRequest && e.code < http.StatusInternalServerError {
		return
	}
	// An answer with an older state is that of a write without changes, or of a delete.
	stale := named > 0 && named <= before
	key, ok := s.stored(q.Group, res)
	if !ok || sub == "token" {
		return
	}
	_ = s.changes(before, func(c *sqlstore.Change) error { // an unreadable state is omitted
		if q.Revision > 0 || c.Key.Resource != key || c.Key.Namespace != q.Namespace || q.Name != "" && c.Key.Name != q.Name || stale && !c.Deleted || named > before && c.Revision != named {
			return nil
		}
		q.Revision = c.Revision
		q.Changed = differences(c)
		return nil
	})
}

// stored returns the key of a resource's objects.
func (s *Server) stored(group, plural string) (string, bool) {
	for _, res := range s.plane.Server.Config().Catalogue.All() {
		if res.Group == group && res.Plural == plural && res.Storage != nil {
			return res.Storage.Key, true
		}
	}
	return "", false
}
