package filters_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
)

// stages keeps the stage, code and user of each event.
type stages struct {
	seen []string
	err  error
}

func (s *stages) Take(line []byte) error {
	var e struct {
		Stage          string
		User           struct{ Username string }
		ResponseStatus *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	text := e.Stage + " " + e.User.Username
	if st := e.ResponseStatus; st != nil {
		text += fmt.Sprintf(" %d %s", st.Code, st.Message)
	}
	s.seen = append(s.seen, strings.TrimSpace(text))
	return s.err
}

type known struct{ err error }

func (k known) Authenticate(*http.Request) (*authx.Authenticated, bool, error) {
	return &authx.Authenticated{Identity: &authx.Identity{Name: "u"}}, k.err == nil, k.err
}

// TestAuditStages: which events a request leaves, however it ends.
func TestAuditStages(t *testing.T) {
	watch := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }
	for _, tc := range []struct {
		name, path string
		last       http.HandlerFunc
		bad        error // of the credential
		sink       error // of the backend
		code       int
		want       []string
	}{
		{name: "answered", path: "/version", last: ok, code: 200, want: []string{"RequestReceived u", "ResponseComplete u 200"}},
		{name: "without an answer", path: "/version", last: func(http.ResponseWriter, *http.Request) {}, code: 200, want: []string{"RequestReceived u", "ResponseComplete u 200 Connection closed early"}},
		{name: "watch", path: "/api/v1/pods?watch=1", last: watch, code: 200, want: []string{"RequestReceived u", "ResponseStarted u 200", "ResponseComplete u 200"}},
		{name: "panic", path: "/version", last: func(http.ResponseWriter, *http.Request) { panic("oh") }, code: 500, want: []string{"RequestReceived u", "Panic u 500 APIServer panic'd: oh"}},
		{name: "panic in a watch", path: "/api/v1/pods?watch=1", last: func(w http.ResponseWriter, r *http.Request) { watch(w, r); panic("oh") }, code: 200, want: []string{"RequestReceived u", "ResponseStarted u 200", "Panic u 500 APIServer panic'd: oh"}},
		{name: "a stranger", path: "/version", last: ok, bad: errors.New("bad"), code: 401, want: []string{"ResponseStarted  401 Unauthorized"}},
		{name: "nothing is recorded", path: "/healthz", last: ok, code: 200},
		{name: "nothing of a panic either", path: "/healthz", last: func(http.ResponseWriter, *http.Request) { panic("oh") }, code: 500},
		{name: "a stage left out", path: "/metrics", last: ok, code: 200, want: []string{"ResponseComplete u 200"}},
		{name: "cannot be recorded", path: "/version", last: ok, sink: errors.New("full"), code: 500, want: []string{"RequestReceived u", "ResponseComplete u 500"}},
	} {
		sink := &stages{err: tc.sink}
		policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: None, nonResourceURLs: [/healthz]}\n- {level: RequestResponse, nonResourceURLs: [/metrics], omitStages: [RequestReceived]}\n- {level: RequestResponse}"))
		if err != nil {
			t.Fatal(err)
		}
		a := &audit.Auditor{Policy: policy, Sinks: []audit.Sink{sink}, Metrics: audit.NewMetrics(), Clock: time.Now}
		var w *httptest.ResponseRecorder
		aborted := func() (aborted bool) {
			defer func() { aborted = recover() == http.ErrAbortHandler }()
			w = serve(httptest.NewRequest("GET", tc.path, nil), tc.last,
				filters.Recover(quiet, func() {}), filters.Audit(a, filters.Audited{Objects: func(i *request.Info) bool { return i.IsResource }}, quiet), filters.Authenticate(known{tc.bad}, nil, quiet, fail), filters.AuditReceived(a))
			return false
		}()
		if aborted != (tc.name == "panic in a watch") || !aborted && w.Code != tc.code {
			t.Errorf("%s: %v %+v", tc.name, aborted, w)
		}
		if !slices.Equal(sink.seen, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, sink.seen, tc.want)
		}
	}
}

// TestAuditFailuresAreLoggedOnce: while a backend takes no events, clients, strangers too, do not cause a line for each request.
func TestAuditFailuresAreLoggedOnce(t *testing.T) {
	policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"))
	if err != nil {
		t.Fatal(err)
	}
	a := &audit.Auditor{Policy: policy, Sinks: []audit.Sink{&stages{err: errors.New("full")}}, Metrics: audit.NewMetrics(), Clock: time.Now}
	var out bytes.Buffer
	audited := filters.Audit(a, filters.Audited{}, slog.New(slog.NewTextHandler(&out, nil)))
	for range 100 {
		for bad, code := range map[error]int{nil: 500, errors.New("bad"): 401} {
			w := serve(httptest.NewRequest("GET", "/version", nil), func(http.ResponseWriter, *http.Request) {}, audited, filters.Authenticate(known{bad}, nil, quiet, fail), filters.AuditReceived(a))
			if w.Code != code {
				t.Fatalf("%d, want %d", w.Code, code)
			}
		}
	}
	for _, text := range []string{"an audit event is lost", "a request is refused because it cannot be recorded"} {
		if n := strings.Count(out.String(), text); n != 1 {
			t.Errorf("%d lines: %s", n, text)
		}
	}
}

// lines keeps events as they are.
type lines struct{ all string }

func (l *lines) Take(line []byte) error {
	l.all += string(line)
	return nil
}

// TestAuditShows: an answer that shows what other requests are for is recorded only where the
// policy records the answers to those too.
func TestAuditShows(t *testing.T) {
	for level, want := range map[string]bool{"Metadata": false, "Request": false, "None": false, "RequestResponse": true} {
		policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: " + level + ", resources: [{group: '', resources: [secrets]}]}\n- {level: RequestResponse}"))
		if err != nil {
			t.Fatal(err)
		}
		sink := &lines{}
		a := &audit.Auditor{Policy: policy, Sinks: []audit.Sink{sink}, Metrics: audit.NewMetrics(), Clock: time.Now}
		answer := func(w http.ResponseWriter, r *http.Request) {
			request.From(r.Context()).Audit.Shows(&authx.Attributes{Verb: "get", ResourceRequest: true, Resource: "secrets", Namespace: "a", Name: "x"})
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"hidden":1}`)
		}
		w := serve(httptest.NewRequest("GET", "/apis/g/v1/things/x", nil), answer, filters.Audit(a, filters.Audited{Objects: func(i *request.Info) bool { return i.IsResource }}, quiet), filters.Authenticate(known{}, nil, quiet, fail), filters.AuditReceived(a))
		if !strings.Contains(w.Body.String(), "hidden") || !strings.Contains(sink.all, "ResponseComplete") || strings.Contains(sink.all, "hidden") != want {
			t.Errorf("%s: %s %s", level, w.Body, sink.all)
		}
	}
}

// TestAuditConversion: the memory for the values of an answer while it is converted to JSON counts against the bound of all answers
// in progress; one that is too long as JSON is left out of its event, and one that cannot be read is logged once.
func TestAuditConversion(t *testing.T) {
	policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: RequestResponse, omitStages: [RequestReceived]}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		err          error
		event, lacks string
		logged       int
	}{
		"an object": {nil, `"responseObject":{"as":"json"}`, "truncated", 0},
		"too long":  {fmt.Errorf("a list: %w", framing.ErrTooLong), `"audit.k8s.io/truncated":"true"`, "responseObject", 0},
		"no object": {errors.New("the kind is not known"), `"stage":"ResponseComplete"`, "responseObject", 1},
	} {
		sink, logged := &lines{}, &bytes.Buffer{}
		a := &audit.Auditor{Policy: policy, Sinks: []audit.Sink{sink}, Metrics: audit.NewMetrics(), Clock: time.Now}
		const size = 1 << 20
		forms := filters.Audited{Objects: func(*request.Info) bool { return true }, JSON: func(_ string, body []byte) ([]byte, error) {
			if len(body) != size || a.Reserve(audit.MaxHeld-16*size) {
				t.Errorf("%s: %d bytes are read, and their values do not count", name, len(body))
			}
			return []byte(`{"as":"json"}`), tc.err
		}}
		filter := filters.Audit(a, forms, slog.New(slog.NewTextHandler(logged, nil)))
		for range 2 {
			serve(httptest.NewRequest("GET", "/api/v1/pods", nil), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/yaml")
				_, _ = w.Write(make([]byte, size))
			}, filter, filters.Authenticate(known{}, nil, quiet, fail), filters.AuditReceived(a))
		}
		if strings.Count(sink.all, tc.event) != 2 || strings.Contains(sink.all, tc.lacks) || strings.Count(logged.String(), "lacks its response object") != tc.logged {
			t.Errorf("%s: %s\n%s", name, sink.all, logged)
		}
		if !a.Reserve(audit.MaxHeld) {
			t.Errorf("%s: room is not given back", name)
		}
	}
}

// TestAuditRoom: an answer takes its size of the room for answers, and so does its conversion. JSON is not
// converted.
func TestAuditRoom(t *testing.T) {
	var zipped bytes.Buffer
	text := `{"a":"` + strings.Repeat("word ", 10_000) + `"}`
	for _, part := range []string{text[:20_000], text[20_000:]} { // as lists are put together
		zip := gzip.NewWriter(&zipped)
		_, _ = io.WriteString(zip, part)
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		rule, mediaType, encoding, body string
		room                            int // from which on the object is recorded
	}{
		"JSON":                   {"", "application/json", "", text, len(text)},
		"without managed fields": {"omitManagedFields: true, ", "application/json", "", text, 2 * len(text)},
		"compressed in parts":    {"", "application/json", "gzip", zipped.String(), zipped.Len() + 2*(len(text)-20_000+1)},
		"Protobuf":               {"", "application/vnd.kubernetes.protobuf", "", "k8s", 3 + 16*3},
		"Protobuf of long names": {"", "application/vnd.kubernetes.protobuf", "", "k", 1 + len(`{"as":"json from another form"}`)},
		"YAML":                   {"", "application/yaml", "", "as: json", 8 + 32*8},
	} {
		policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {" + tc.rule + "level: RequestResponse, omitStages: [RequestReceived]}"))
		if err != nil {
			t.Fatal(err)
		}
		for _, short := range []int{0, 1} {
			sink := &lines{}
			a := &audit.Auditor{Policy: policy, Sinks: []audit.Sink{sink}, Metrics: audit.NewMetrics(), Clock: time.Now}
			forms := filters.Audited{Objects: func(*request.Info) bool { return true }, JSON: func(string, []byte) ([]byte, error) {
				return []byte(`{"as":"json from another form"}`), nil
			}}
			taken := audit.MaxHeld - tc.room + short
			if !a.Reserve(taken) {
				t.Fatal("there is no room to begin with")
			}
			serve(httptest.NewRequest("GET", "/api/v1/pods", nil), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.mediaType)
				w.Header().Set("Content-Encoding", tc.encoding)
				_, _ = io.WriteString(w, tc.body)
			}, filters.Audit(a, forms, quiet), filters.Authenticate(known{}, nil, quiet, fail), filters.AuditReceived(a))
			recorded, marked := strings.Contains(sink.all, `"responseObject":{"a`), strings.Contains(sink.all, `"audit.k8s.io/truncated":"true"`)
			if recorded != (short == 0) || marked != (short == 1) {
				t.Errorf("%s with room for %d bytes but %d: recorded %t, truncated %t", name, tc.room, short, recorded, marked)
			}
			if !a.Reserve(audit.MaxHeld-taken) || a.Reserve(1) {
				t.Errorf("%s: the room that it took is not given back", name)
			}
		}
	}
}

// TestAuditDeadline: the event of a request that took too long has the answer that its client got, and
// not the later one of its handler.
func TestAuditDeadline(t *testing.T) {
	policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: RequestResponse, omitStages: [RequestReceived]}"))
	if err != nil {
		t.Fatal(err)
	}
	sink := &lines{}
	a := &audit.Auditor{Policy: policy, Sinks: []audit.Sink{sink}, Metrics: audit.NewMetrics(), Clock: time.Now}
	late := func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"too":"late"}`)
	}
	w := serve(httptest.NewRequest("GET", "/api/v1/pods?timeout=1ms", nil), late, filters.Audit(a, filters.Audited{Objects: func(*request.Info) bool { return true }}, quiet),
		filters.Deadline(time.Minute, fail), filters.Authenticate(known{}, nil, quiet, fail), filters.AuditReceived(a))
	const want = `"responseObject":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}`
	if w.Code != http.StatusGatewayTimeout || !strings.Contains(sink.all, want) || !strings.Contains(sink.all, `"details":{},"code":504},"responseObject"`) || strings.Contains(sink.all, "late") {
		t.Errorf("%d %s", w.Code, sink.all)
	}
}

// TestAuditHijack: a request whose connection goes on in another protocol has begun to be answered
// then, and not when it ends.
func TestAuditHijack(t *testing.T) {
	policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: RequestResponse}"))
	if err != nil {
		t.Fatal(err)
	}
	sink := &stages{}
	a := &audit.Auditor{Policy: policy, Sinks: []audit.Sink{sink}, Metrics: audit.NewMetrics(), Clock: time.Now}
	var midway []string
	exec := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		midway = slices.Clone(sink.seen)
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		conn.Close()
	}
	ended := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		filters.Scope(time.Now)(filters.Audit(a, filters.Audited{}, quiet)(filters.Authenticate(known{}, nil, quiet, fail)(filters.AuditReceived(a)(http.HandlerFunc(exec))))).ServeHTTP(w, r)
	}))
	defer srv.Close()
	resp, err := http.Get(srv.URL + "/api/v1/namespaces/a/pods/p/exec")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-ended
	want := []string{"RequestReceived u", "ResponseStarted u 101", "ResponseComplete u 101"}
	if !slices.Equal(midway, want[:2]) || !slices.Equal(sink.seen, want) {
		t.Errorf("%q, at the hijack %q; want %q", sink.seen, midway, want)
	}
}
