package filters

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/ratelog"
	"github.com/rowlock/rowlock/server/request"
)

// Audited defines how to record answers in their forms.
type Audited struct {
	// Objects reports whether the answers to a request are objects of this server. Events have no answers of other servers or of
	// pods, and no texts.
	Objects func(*request.Info) bool
	// JSON returns the function that turns an answer of a media type into JSON, or nil for a media type without objects. Its
	// error wraps framing.ErrTooLong if the JSON is longer than an event may hold.
	JSON func(mediaType string, body []byte) ([]byte, error)
	// Encode appends an object of a client as JSON, as the server's release writes it.
	Encode func(dst []byte, obj runtime.Object) ([]byte, error)
}

// lines limits log lines about events, whose number clients choose.
type lines struct{ kept, lacks, lost, refused ratelog.Line }

// auditTrail collects the audit event of a request.
type auditTrail struct {
	auditor *audit.Auditor
	forms   Audited
	scope   *request.Scope
	record  *audit.Record  // nil until the user is authenticated
	status  *metav1.Status // the answer, if it came before that
	log     *slog.Logger
	lines   *lines

	body    []byte // of the answer as sent; it counts against the auditor's room
	made    int    // bytes made of body, which count too
	tooLong bool
	hidden  bool // the answer is not recorded
	stated  bool // the answer is a Status, which is in the record
	started bool

	hijacked bool // the handler has taken the connection for another protocol
}

var _ request.Auditor = (*auditTrail)(nil)

func (t *auditTrail) RequestObject(obj runtime.Object) {
	if t.record != nil {
		t.record.RequestObject(obj, t.forms.Encode)
	}
}

func (t *auditTrail) WantsRequest() bool { return t.record != nil && t.record.WantsRequest() }

func (t *auditTrail) RequestPatch(data []byte) {
	if t.record != nil {
		t.record.RequestPatch(data)
	}
}

func (t *auditTrail) ResponseStatus(st *metav1.Status) {
	t.stated = true
	t.drop()
	if t.record != nil {
		t.record.ResponseStatus(st)
		return
	}
	t.status = st
}

func (t *auditTrail) Kept(annotation string) {
	if t.record != nil && t.record.Level() == audit.None {
		return
	}
	t.lines.kept.Log(context.Background(), t.log, slog.LevelWarn, "an audit annotation keeps its first value: another one was to replace it",
		"annotation", annotation, "audit-id", t.scope.ID)
}

// Shows implements request.Auditor: annotations must not show what the policy keeps out of the audit log.
func (t *auditTrail) Shows(at *authx.Attributes) {
	t.hidden = t.hidden || t.auditor.Policy.For(at).Level != audit.RequestResponse
}

// keep keeps a piece of the answer, if there is room.
func (t *auditTrail) keep(p []byte) {
	if t.stated || t.hidden || t.tooLong {
		return
	}
	if len(t.body)+len(p) > t.auditor.Largest() || !t.auditor.Reserve(len(p)) {
		t.tooLong = true
		t.drop()
		return
	}
	t.body = append(t.body, p...)
}

// drop drops the kept answer, and objects made of it.
func (t *auditTrail) drop() {
	t.auditor.Release(len(t.body) + t.made)
	t.body, t.made = nil, 0
}

// begin evaluates the policy for the request.
func (t *auditTrail) begin(r *http.Request) {
	i := t.scope.Info
	t.record = t.auditor.Begin(r, t.scope.ID, r.URL.RequestURI(), &authx.Attributes{
		User: t.scope.User, Verb: i.Verb, Namespace: i.Namespace, APIGroup: i.Group, APIVersion: i.Version, Resource: i.Resource,
		Subresource: i.Subresource, Name: i.Name, ResourceRequest: i.IsResource, Path: i.Path,
	}, t.scope.Received)
	if t.status != nil {
		t.record.ResponseStatus(t.status)
	}
}

// reach records a stage of the answer, when it is too late to refuse the request.
func (t *auditTrail) reach(s audit.Stage, code int) {
	if t.scope.Actor != nil {
		t.record.Impersonate(t.scope.User, t.scope.Constraint)
	}
	if err := t.record.Reach(s, code, t.scope.Annotations); err != nil {
		t.lines.lost.Log(context.Background(), t.log, slog.LevelError, "an audit event is lost", "audit-id", t.scope.ID, "error", err)
	}
}

// Audit records requests. It wraps authentication, and so records its failures too. Without an auditor it costs nothing.
func Audit(a *audit.Auditor, forms Audited, log *slog.Logger) Filter {
	limits := &lines{}
	return func(next http.Handler) http.Handler {
		if a == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := request.From(r.Context())
			t := &auditTrail{auditor: a, forms: forms, scope: s, log: log, lines: limits}
			s.Audit = t
			rec := recorderOf(w)
			defer func() {
				if s.IsDetached() {
					t.detach(rec)
					return
				}
				p := recover()
				defer t.drop()
				if t.record == nil {
					t.unknown(r, rec.Code)
				} else {
					t.end(w, rec.Code, p)
				}
				if p != nil {
					panic(p)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// detach records the end of an answer that goes on without its handler.
func (t *auditTrail) detach(rec *Recorder) {
	if t.record.Level() == audit.None {
		return
	}
	t.scope.AtEnd(func() { t.end(nil, rec.Code, t.scope.Panicked()) })
}

// unknown records a request without an authenticated user.
func (t *auditTrail) unknown(r *http.Request, code int) {
	t.begin(r)
	t.reach(audit.ResponseStarted, code)
}

// end records how a request ended.
func (t *auditTrail) end(w http.ResponseWriter, code int, p any) {
	if t.record.Level() == audit.None {
		return
	}
	if err, ok := p.(error); p != nil && !(ok && errors.Is(err, http.ErrAbortHandler)) {
		t.record.ResponseStatus(&metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: fmt.Sprintf("APIServer panic'd: %v", p),
		})
		t.reach(audit.Panic, http.StatusInternalServerError)
		return
	}
	switch {
	case code == 0 && t.hijacked:
		code = http.StatusSwitchingProtocols
	case code == 0:
		code = http.StatusOK
		t.record.ResponseStatus(&metav1.Status{Status: metav1.StatusSuccess, Message: "Connection closed early"})
	}
	if t.scope.Info.Verb != "watch" {
		t.scope.AnnotateLatency(t.auditor.Clock().Sub(t.scope.Received))
	}
	switch {
	case LongRunning(t.scope.Info):
		t.start(code)
	case t.stated || t.hidden:
	case t.tooLong:
		t.record.Truncated()
	case len(t.body) > 0:
		t.answered(w.Header())
	}
	t.reach(audit.ResponseComplete, code)
}

const (
	// valueWeight is the number of bytes of decoded values for a byte of YAML or CBOR.
	valueWeight = 16
	// textWeight is the number of bytes of JSON for a byte in another form, at most as a rule. An object is no longer
	// than Auditor.MaxObject; a longer result counts once its length is known.
	textWeight = 16
)

// room reserves room for n more bytes that are made of the answer; drop returns it. Without room the event has no object, and
// an annotation states so.
func (t *auditTrail) room(n int) bool {
	if !t.auditor.Reserve(n) {
		t.record.Truncated()
		return false
	}
	t.made += n
	return true
}

// answered records the object of the answer. JSON is recorded as sent and needs no further room; an answer in another form is
// converted, which needs room of its own.
func (t *auditTrail) answered(h http.Header) {
	mediaType, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return
	}
	body := t.body
	if h.Get("Content-Encoding") == "gzip" {
		if body, err = framing.Unpacked(body, t.auditor.Largest(), t.room); errors.Is(err, framing.ErrTooLong) {
			t.record.Truncated()
			return
		} else if err != nil {
			return // the answer was aborted
		}
	}
	if mediaType != codecs.JSON {
		body = t.converted(mediaType, body)
	}
	if len(body) == 0 || t.record.Copies() && !t.room(len(body)) {
		return
	}
	t.record.ResponseObject(body)
}

// converted makes JSON of an answer in another form. It returns nil if the answer cannot be recorded.
func (t *auditTrail) converted(mediaType string, body []byte) []byte {
	if t.forms.JSON == nil {
		return nil
	}
	text := min(t.auditor.Largest(), textWeight*len(body))
	values := 0
	if mediaType != codecs.Protobuf {
		values = valueWeight * len(body)
	}
	if !t.room(text + values) {
		return nil
	}
	switch data, err := t.forms.JSON(mediaType, body); {
	case errors.Is(err, framing.ErrTooLong):
		t.record.Truncated()
	case err != nil:
		t.lines.lacks.Log(context.Background(), t.log, slog.LevelWarn, "an audit event lacks its response object, which could not be turned into JSON",
			"type", mediaType, "audit-id", t.scope.ID, "error", err)
	case len(data) <= text || t.room(len(data)-text):
		return data
	}
	return nil
}

// start records that a long answer has begun, once.
func (t *auditTrail) start(code int) {
	if !t.started {
		t.started = true
		t.reach(audit.ResponseStarted, code)
	}
}

// AuditReceived records that a request has arrived, once its user is authenticated. It refuses a request that must be recorded
// and cannot be.
func AuditReceived(a *audit.Auditor) Filter {
	return func(next http.Handler) http.Handler {
		if a == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			t, ok := request.From(r.Context()).Audit.(*auditTrail)
			if !ok {
				next.ServeHTTP(w, r)
				return
			}
			t.begin(r)
			if t.record.Level() == audit.None {
				next.ServeHTTP(w, r)
				return
			}
			if err := t.record.Reach(audit.RequestReceived, 0, t.scope.Annotations); err != nil {
				t.auditor.Metrics.Rejected()
				t.lines.refused.Log(r.Context(), t.log, slog.LevelError, "a request is refused because it cannot be recorded", "audit-id", t.scope.ID, "error", err)
				internal(w, r, errors.New("failed to store audit event"))
				return
			}
			if long := LongRunning(t.scope.Info); long || t.record.WantsResponse() && t.forms.Objects != nil && t.forms.Objects(t.scope.Info) {
				w = &recordingWriter{ResponseWriter: w, trail: t, long: long}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// recordingWriter records an answer that passes.
type recordingWriter struct {
	http.ResponseWriter
	trail *auditTrail
	long  bool
}

// Unwrap serves http.ResponseController.
func (w *recordingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *recordingWriter) WriteHeader(code int) {
	if w.long && (code >= 200 || code == http.StatusSwitchingProtocols) {
		w.trail.start(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

// Hijack serves http.ResponseController: the connection changes to another protocol.
func (w *recordingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.long {
		w.trail.hijacked = true
		w.trail.start(http.StatusSwitchingProtocols)
	}
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Write implements io.Writer.
func (w *recordingWriter) Write(p []byte) (int, error) {
	if w.long {
		w.trail.start(http.StatusOK)
	} else {
		w.trail.keep(p)
	}
	return w.ResponseWriter.Write(p)
}
