package request

import (
	"context"
	"net/http"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/permits"
)

// Scope is what the server knows of one request, filled in by the filters in
// turn. It belongs to the request's goroutine.
type Scope struct {
	Info     *Info
	ID       string // the Audit-Id
	Received time.Time
	User     *authx.Identity // who the request acts as; nil before authentication
	Actor    *authx.Identity // who is really asking, where User is impersonated; else nil

	Constraint string // the verb of constrained impersonation that allowed User; "" otherwise

	Permit permits.Permit // what an authorizer allowed; without one nothing is read or written

	// Inside: the server asks itself, and may use resources that are off.
	Inside bool

	// Terminated is the code of an answer that the server gave to protect itself; else 0.
	Terminated int
	// Long: the answer took turns with other long ones.
	Long bool
	// Aborted: the answer was cut off.
	Aborted bool

	Audit       Auditor           // nil where nothing is recorded
	Annotations map[string]string // of the audit event; nil where nothing is recorded

	Deprecated *Deprecation // what was asked for is served for some time only; else nil

	// Seat is what a watch has until it has begun; else nil.
	Seat Seat

	header   http.Header
	warnings []string
	unfit    int // how many of warnings no header can hold
	size     int
	cut      bool

	outlivable bool       // somebody will call Returned
	outlived   *outliving // the answer goes on without its handler; else nil
	panicked   any        // what it has ended with
}

// A response carries this many characters of warnings before each is cut short. Of texts that no header
// can hold a few are kept, as they may fit once they are cut.
const (
	maxWarnings = 4 * 1024
	maxWarning  = 256
	maxUnfit    = 64
)

// Auditor takes what the audit event of a request may hold of its bodies.
type Auditor interface {
	RequestObject(obj runtime.Object)
	// WantsRequest says whether bodies of requests are recorded.
	WantsRequest() bool
	RequestPatch(data []byte)
	// ResponseStatus takes a Status that is the answer.
	ResponseStatus(st *metav1.Status)
	// Kept says that an annotation was to have another value than it has already.
	Kept(annotation string)
	// Shows says that the answer holds what a request of such attributes would be answered
	// with: it is recorded where the policy records the answers to those too.
	Shows(at *authx.Attributes)
}

// Seat is what a watch needs of the server as it begins. Others may have it while the
// client takes what it is sent: Sending says that this is so, and Sent waits until the
// watch may go on.
type Seat interface {
	Sending()
	Sent() error
	Leave()
}

// Begun gives the seat of a watch back that has begun. Once is enough, more do nothing.
func (s *Scope) Begun() {
	if seat := s.Seat; seat != nil {
		s.Seat = nil
		seat.Leave()
	}
}

type scopeKey struct{}

// NewScope starts a scope whose warnings go to header.
func NewScope(header http.Header, received time.Time) *Scope {
	return &Scope{header: header, Received: received}
}

// With returns a context that carries s.
func With(ctx context.Context, s *Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// From returns the scope of a request, or an empty one that leads nowhere.
func From(ctx context.Context) *Scope {
	if s, ok := ctx.Value(scopeKey{}).(*Scope); ok {
		return s
	}
	return &Scope{}
}

// Deprecation says that an API is not to be used any more.
type Deprecation struct {
	Warning string // to the client
	Removed string // the release that does not serve it any more; "" while none is known
}

// Deprecate tells the client, the audit event and the metrics of a deprecation.
func (s *Scope) Deprecate(d Deprecation) {
	s.Deprecated = &d
	s.Warn(d.Warning)
	s.Annotate("k8s.io/deprecated", "true")
	if d.Removed != "" {
		s.Annotate("k8s.io/removed-release", d.Removed)
	}
}

// Annotate adds a fact to the audit event, where there is one. The first value of an annotation
// stays.
func (s *Scope) Annotate(key, value string) {
	if s.Audit == nil {
		return
	}
	if s.Annotations == nil {
		s.Annotations = make(map[string]string)
	}
	if first, ok := s.Annotations[key]; !ok {
		s.Annotations[key] = value
	} else if first != value {
		s.Audit.Kept(key)
	}
}

// Warn adds a Warning header, once for each text. It has no effect once the
// response has begun.
func (s *Scope) Warn(text string) {
	if text == "" || s.header == nil {
		return
	}
	for _, w := range s.warnings {
		if w == text {
			return
		}
	}
	if s.cut && s.size >= maxWarnings {
		return
	}
	if s.cut || s.size+utf8.RuneCountInString(text) <= maxWarnings {
		fits := s.add(text)
		if !fits && (s.cut || s.unfit == maxUnfit) {
			return
		}
		if !fits {
			s.unfit++
		}
		s.warnings = append(s.warnings, text)
		return
	}
	s.warnings = append(s.warnings, text)
	// Too much: from here on warnings are shortened, those so far too. As many as
	// there are by now are written, whatever they come to.
	s.cut, s.size = true, 0
	s.header.Del("Warning")
	for _, w := range s.warnings {
		s.add(w)
	}
}

// add writes a warning, unless it holds what no header can.
func (s *Scope) add(text string) (fits bool) {
	n := utf8.RuneCountInString(text)
	if s.cut && n > maxWarning {
		text, n = beginning(text, maxWarning), maxWarning
	}
	h, err := utilnet.NewWarningHeader(299, "-", text)
	if err != nil {
		return false
	}
	s.header.Add("Warning", h)
	s.size += n
	return true
}

// beginning is the first n characters of a longer text.
func beginning(text string, n int) string {
	for at := range text {
		if n--; n < 0 {
			return text[:at]
		}
	}
	return text
}
