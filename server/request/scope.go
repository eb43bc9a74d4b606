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

// Scope is the state of one request, which the filters fill in. It belongs to the request's goroutine.
type Scope struct {
	Info     *Info
	ID       string // the Audit-Id
	Received time.Time
	User     *authx.Identity // the user as whom the request acts; nil before authentication
	Actor    *authx.Identity // the authenticated user, if User is impersonated; otherwise nil

	Constraint string // the verb of constrained impersonation that allowed User; otherwise ""

	// Of a request that lasts: End ends it, and Stand report whether its user may still be who it is.
	End   context.CancelFunc
	Stand []func(context.Context) bool

	Permit permits.Permit // from the authorizer; without it nothing is read or written

	// Inside marks a request of the server to itself, which may use disabled resources.
	Inside bool

	// Terminated is the code of an answer by which the server protected itself; otherwise 0.
	Terminated int
	// Long marks an answer that took turns with other long ones.
	Long bool
	// Aborted marks an answer that was cut off.
	Aborted bool

	Audit       Auditor           // nil if nothing is recorded
	Annotations map[string]string // of the audit event; nil if nothing is recorded
	phases      phases            // likewise

	Deprecated *Deprecation // of the requested API; otherwise nil

	// Seat is the capacity that the request uses; nil: none. A watch has it until it has begun.
	Seat Seat
	// Taken, if set, is called once the client has taken a write of the answer, before the request waits for a seat that it has lost
	// in the meantime.
	Taken func()

	header   http.Header
	warnings []string
	unfit    int // number of warnings that no header can hold
	size     int
	cut      bool

	canDetach bool      // Returned will be called
	detached  *detached // if the answer continues without its handler; otherwise nil
	panicked  any       // the value of the panic that ended it
}

// A response carries this many characters of warnings before each is shortened. A few texts that no header
// can hold are kept, because they may fit once they are shortened.
const (
	maxWarnings = 4 * 1024
	maxWarning  = 256
	maxUnfit    = 64
)

// Auditor records bodies for the audit event of a request.
type Auditor interface {
	RequestObject(obj runtime.Object)
	// WantsRequest reports whether bodies of requests are recorded.
	WantsRequest() bool
	RequestPatch(data []byte)
	// ResponseStatus records a Status that is the answer.
	ResponseStatus(st *metav1.Status)
	// Kept records an attempt to change an existing annotation.
	Kept(annotation string)
	// Shows records that the answer contains the answer to a request with such attributes: the policy must
	// allow recording the answers to both.
	Shows(at *authx.Attributes)
}

// Seat is the capacity that a request uses while it runs. While it waits, other requests may use the seat: Sending begins
// that, and Sent waits until the request may continue. Leave gives back that of a watch that has begun.
type Seat interface {
	Sending()
	Sent() error
	Leave()
}

// Waiting calls wait, which waits for the client, or for other requests. These may use the seat of the request meanwhile. The error is
// that of wait, or the reason why the request gets no seat again. A nil Scope has no seat.
func (s *Scope) Waiting(wait func() error) error {
	if s == nil || s.Seat == nil {
		return wait()
	}
	seat := s.Seat
	seat.Sending()
	err := wait()
	if late := seat.Sent(); err == nil {
		err = late
	}
	return err
}

// Begun releases the seat of a watch that has begun. Repeated calls do nothing.
func (s *Scope) Begun() {
	if seat := s.Seat; seat != nil {
		s.Seat = nil
		seat.Leave()
	}
}

type scopeKey struct{}

// NewScope makes a scope whose warnings are added to header.
func NewScope(header http.Header, received time.Time) *Scope {
	return &Scope{header: header, Received: received}
}

// With returns a context that carries s.
func With(ctx context.Context, s *Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// From returns the scope of a request, or an empty one without effect.
func From(ctx context.Context) *Scope {
	if s, ok := ctx.Value(scopeKey{}).(*Scope); ok {
		return s
	}
	return &Scope{}
}

// Deprecation describes a deprecated API.
type Deprecation struct {
	Warning string // to the client
	Removed string // the release that removes it; "" if unknown
}

// Deprecate reports a deprecation to the client, the audit event and the metrics.
func (s *Scope) Deprecate(d Deprecation) {
	s.Deprecated = &d
	s.Warn(d.Warning)
	s.Annotate("k8s.io/deprecated", "true")
	if d.Removed != "" {
		s.Annotate("k8s.io/removed-release", d.Removed)
	}
}

// Annotate adds an annotation to the audit event, if there is one. The first value of an annotation stays.
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

// Warn adds a Warning header, once for each text. It has no effect after the response has begun.
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
	// Too long: from here on warnings are shortened, including earlier ones. All warnings up to this number
	// are written, whatever their length.
	s.cut, s.size = true, 0
	s.header.Del("Warning")
	for _, w := range s.warnings {
		s.add(w)
	}
}

// add writes a warning, unless no header can hold it.
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

// beginning returns the first n characters of a longer text.
func beginning(text string, n int) string {
	for at := range text {
		if n--; n < 0 {
			return text[:at]
		}
	}
	return text
}
