package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/rowlock/rowlock/authx"
)

// Auditor records requests by its policy.
type Auditor struct {
	Policy  *Policy
	Sinks   []Sink
	Metrics *Metrics
	Clock   func() time.Time

	// MaxObject limits the bytes of an object in an event: a larger one is omitted, and the event is annotated. Default 4 MiB.
	// It is set before the first request.
	MaxObject int

	held atomic.Int64
}

// MaxHeld limits the bytes of answers that all requests in flight hold for their events.
const MaxHeld = 256 << 20

// Largest is MaxObject or its default.
func (a *Auditor) Largest() int { return cmp.Or(a.MaxObject, 4<<20) }

// Reserve reserves n bytes for answers, and reports whether they were free. Release gives them back.
func (a *Auditor) Reserve(n int) bool {
	if a.held.Add(int64(n)) <= MaxHeld {
		return true
	}
	a.Release(n)
	return false
}

// Release releases the memory that Reserve reserved.
func (a *Auditor) Release(n int) { a.held.Add(-int64(n)) }

// Record is one request's event in the making. It belongs to the request's
// goroutine. A Record whose verdict is None takes nothing in.
type Record struct {
	auditor   *Auditor
	decision  PolicyDecision
	event     Event
	truncated bool // an object was left out
}

// Begin starts a record of a request. uri is as the client sent it.
func (a *Auditor) Begin(r *http.Request, id, uri string, at *authx.Attributes, received time.Time) *Record {
	v := a.Policy.For(at)
	a.Metrics.level(v.Level)
	rec := &Record{auditor: a, decision: v}
	if v.Level == None {
		return rec
	}
	rec.event = Event{
		Kind: "Event", APIVersion: apiVersion, Level: v.Level, AuditID: id, RequestURI: uri, Verb: at.Verb,
		User: at.User.UserInfo(), SourceIPs: sources(r), UserAgent: agent(r), RequestReceivedTimestamp: micro(received),
	}
	if at.ResourceRequest {
		rec.event.ObjectRef = &ObjectReference{
			Resource: at.Resource, Namespace: at.Namespace, Name: at.Name,
			APIGroup: at.APIGroup, APIVersion: at.APIVersion, Subresource: at.Subresource,
		}
	}
	return rec
}

// Level returns the level of the policy for the request.
func (r *Record) Level() Level { return r.decision.Level }

// Impersonate records the impersonated user, and the verb of constrained impersonation that
// allowed it, "" otherwise.
func (r *Record) Impersonate(who *authx.Identity, constraint string) {
	u := who.UserInfo()
	r.event.ImpersonatedUser = &u
	if constraint != "" {
		r.event.AuthenticationMetadata = &AuthenticationMetadata{ImpersonationConstraint: constraint}
	}
}

// RequestObject takes the object that the client sent. encode appends an object as JSON, as the server's release writes it.
func (r *Record) RequestObject(obj runtime.Object, encode func(dst []byte, obj runtime.Object) ([]byte, error)) {
	if r.decision.Level == None {
		return
	}
	if m, ok := obj.(metav1.Object); ok {
		r.refer(m)
	}
	if r.decision.Level == Metadata {
		return
	}
	if data, err := encode(nil, obj); err == nil {
		r.event.RequestObject = r.body(data)
	}
}

// refer fills in the parts of the object reference that the path does not name.
func (r *Record) refer(m metav1.Object) {
	ref := r.event.ObjectRef
	if ref == nil {
		return
	}
	for _, f := range []struct {
		to   *string
		from string
	}{
		{&ref.Namespace, m.GetNamespace()}, {&ref.Name, m.GetName()}, {&ref.UID, string(m.GetUID())}, {&ref.ResourceVersion, m.GetResourceVersion()},
	} {
		*f.to = cmp.Or(*f.to, f.from)
	}
}

// RequestPatch takes the patch that the client sent, as JSON.
func (r *Record) RequestPatch(data []byte) {
	if !r.wants(Request) || !json.Valid(data) {
		return
	}
	if len(data) > r.auditor.Largest() {
		r.Truncated()
		return
	}
	r.event.RequestObject = data
}

// wants reports whether the record's level includes the content of level l.
func (r *Record) wants(l Level) bool {
	return r.decision.Level == RequestResponse || l == Request && r.decision.Level == Request
}

// WantsRequest reports whether bodies of requests are recorded.
func (r *Record) WantsRequest() bool { return r.wants(Request) }

// WantsResponse reports whether bodies of answers are recorded.
func (r *Record) WantsResponse() bool { return r.wants(RequestResponse) }

// ResponseStatus records a Status that is the answer, whatever form the client gets.
func (r *Record) ResponseStatus(st *metav1.Status) {
	if r.decision.Level == None {
		return
	}
	r.event.ResponseStatus = &metav1.Status{Status: st.Status, Message: st.Message, Reason: st.Reason, Details: st.Details, Code: st.Code}
	if !r.WantsResponse() {
		return
	}
	whole := *st
	whole.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if data, err := json.Marshal(&whole); err == nil {
		r.event.ResponseObject = r.body(data)
	}
}

// Copies reports whether the event holds another text than the object that was answered with: one without
// managed fields.
func (r *Record) Copies() bool { return r.WantsResponse() && r.decision.OmitManagedFields }

// ResponseObject takes the answer, as JSON.
func (r *Record) ResponseObject(data []byte) {
	if r.WantsResponse() && json.Valid(data) {
		r.event.ResponseObject = r.body(data)
	}
}

// Truncated notes that an object is left out of the event, as it is too large.
func (r *Record) Truncated() { r.truncated = true }

// body returns an object for the event; nil if the event does not include it.
func (r *Record) body(data []byte) json.RawMessage {
	if len(data) > r.auditor.Largest() {
		r.Truncated()
		return nil
	}
	if r.decision.OmitManagedFields {
		return WithoutManagedFields(data)
	}
	return data
}

// Reach sends the event at a stage on to the backends. code is 0 before an answer.
// It reports whether every backend that must not lose events has taken it.
func (r *Record) Reach(s Stage, code int, annotations map[string]string) error {
	e := &r.event
	if r.decision.Level == None {
		return nil
	}
	if code != 0 {
		if e.ResponseStatus == nil {
			e.ResponseStatus = &metav1.Status{}
		}
		e.ResponseStatus.Code = int32(code)
	}
	if r.decision.Omits(s) {
		return nil
	}
	if e.Stage, e.StageTimestamp = s, e.RequestReceivedTimestamp; s != RequestReceived {
		e.StageTimestamp = micro(r.auditor.Clock())
	}
	e.Annotations = annotations
	if r.truncated {
		e.Annotations = map[string]string{truncated: "true"}
		maps.Copy(e.Annotations, annotations)
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding an audit event: %w", err)
	}
	r.auditor.Metrics.events.Inc()
	for _, sink := range r.auditor.Sinks {
		if err := sink.Take(line); err != nil {
			return err
		}
	}
	return nil
}

// maxAgent bounds the recorded user agent.
const maxAgent = 1024

func agent(r *http.Request) string {
	ua := r.UserAgent()
	if len(ua) > maxAgent {
		return ua[:maxAgent] + "...TRUNCATED"
	}
	return ua
}

// maxForwarded bounds the part of X-Forwarded-For that is recorded: a hundred addresses. Clients may send a hundred thousand.
const maxForwarded = 4 << 10

// sources returns the addresses of the proxies in a request, and the one from which it came.
func sources(r *http.Request) []string {
	if proxies := r.Header.Get("X-Forwarded-For"); len(proxies) > maxForwarded {
		proxies = proxies[:max(0, strings.LastIndexByte(proxies[:maxForwarded], ','))]
		r = &http.Request{RemoteAddr: r.RemoteAddr, Header: http.Header{"X-Forwarded-For": {proxies}, "X-Real-Ip": r.Header["X-Real-Ip"]}}
	}
	ips := utilnet.SourceIPs(r)
	list := make([]string, len(ips))
	for i, ip := range ips {
		list[i] = ip.String()
	}
	return list
}
