package recorded

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Server is the server of a replay.
type Server struct {
	URL    string       // "https://127.0.0.1:6443"
	Client *http.Client // trusts the server; must not add credentials
	Token  string       // of user admin in group system:masters
	// Vars are the values of variables of scenarios.
	Vars map[string]string
	// Events are the audit events so far that have an ID, as JSON, in their order; nil where nothing is
	// recorded.
	Events func(id string) ([][]byte, error)
}

// Result is the outcome of one step; Diff is empty when it is equal.
type Result struct {
	Index int
	Do    string
	Diff  []string
	Took  time.Duration // beyond the wait of the step; where it differs, the first time it was sent
	Ended time.Duration // the same time, since the scenario began
	Again int           // how often the step was sent again; see Step.mayRepeat
	Got   *Want         // the actual answer, in the form of a recording; nil if the step is equal, or failed
}

// Equal reports whether the answer to the step equals the recorded one.
func (r *Result) Equal() bool { return len(r.Diff) == 0 }

type answer struct {
	status int
	header http.Header
	body   any
	raw    []byte
}

// Replay runs all steps of a scenario in order.
func Replay(ctx context.Context, srv Server, s *Scenario) []Result {
	vars, start := map[string]string{"ns": s.NamespaceName()}, time.Now()
	behind := time.Duration(0) // the time that steps took, beyond their waits
	unknown := ""
	for _, name := range s.Vars {
		if vars[name] = srv.Vars[name]; vars[name] == "" {
			unknown = name
		}
	}
	if !s.Bare {
		prepare(ctx, srv, vars["ns"])
	}
	out := make([]Result, 0, len(s.Steps))
	events := auditing{events: srv.Events, vars: vars}
	for i := range s.Steps {
		step := &s.Steps[i]
		res := Result{Index: i, Do: step.Do}
		if unknown != "" {
			res.Diff = []string{"no earlier step defines " + unknown}
			out = append(out, res)
			continue
		}
		began := time.Now()
		for again := time.Duration(0); ; again = againEvery {
			if again > 0 {
				res.Again++
			}
			got, err := send(ctx, srv, step, vars, again)
			if err != nil {
				res.Diff = []string{"request failed: " + err.Error()}
			} else {
				save(step, got, vars) // first: what this step saves is normalised in its own answer too
				res.Diff, res.Got = append(compare(step, got, vars), events.compare(ctx, i, step, got)...), nil
				if !res.Equal() {
					res.Got = record(step, got, vars)
				}
			}
			if again == 0 || res.Equal() {
				res.Took, res.Ended = max(0, time.Since(began)-step.waits()), time.Since(start)
			}
			if again == 0 {
				behind += res.Took
			}
			if res.Equal() || err != nil || behind < InTime || !step.mayRepeat(got) || time.Since(began) > step.waits()+lateFor {
				break
			}
		}
		out = append(out, res)
	}
	events.recount(out)
	return out
}

func prepare(ctx context.Context, srv Server, ns string) {
	for path, body := range map[string]string{
		"/api/v1/namespaces": `{"metadata":{"name":"` + ns + `"}}`,
	} {
		step := &Step{Do: "POST " + path, Body: json.RawMessage(body)}
		_, _ = send(ctx, srv, step, nil, 0) // the answer is ignored: it may exist
	}
	step := &Step{Do: "POST /api/v1/namespaces/" + ns + "/serviceaccounts", Body: json.RawMessage(`{"metadata":{"name":"default"}}`)}
	_, _ = send(ctx, srv, step, nil, 0)
}

// A step before which who recorded waited is about what takes some time. Where the server is busy
// it may take longer: so what differs is asked again for a while, if the request has done nothing, and the
// steps so far took long enough to show that it is busy.
const (
	againEvery = 100 * time.Millisecond
	lateFor    = 20 * time.Second
)

// InTime is the longest time that the steps of a scenario take on an idle machine, beyond their waits.
const InTime = 500 * time.Millisecond

// Settle is the delay of controllers after a client's write (controllers.Config).
const Settle = time.Second

// Late reports whether a scenario differs because the client was too slow to see the answers of a stock server
// without controllers: nothing differs before the steps have taken longer than a second, in which no
// controller does anything, and longer than they take on a quiet machine.
func Late(results []Result) (took time.Duration, late bool) {
	for i := range results {
		took += results[i].Took
		if !results[i].Equal() {
			return took, took > InTime && results[i].Ended > Settle
		}
	}
	return took, false
}

// mayRepeat reports whether a step may be sent again after an answer.
func (s *Step) mayRepeat(got *answer) bool {
	return s.Sleep > 0 && (strings.HasPrefix(s.Do, "GET ") || got.status >= http.StatusBadRequest)
}

// send sends the request of a step, and waits before that: as long as the step asks, or for another time.
func send(ctx context.Context, srv Server, step *Step, vars map[string]string, instead time.Duration) (*answer, error) {
	if instead == 0 {
		instead = time.Duration(step.Sleep * float64(time.Second))
	}
	time.Sleep(instead)
	method, path, _ := strings.Cut(fill(step.Do, vars), " ")
	watch := method == "WATCH"
	if watch {
		method = http.MethodGet
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := time.AfterFunc(busyFor, cancel)
	defer limit.Stop()
	sent, err := bodyOf(step, vars)
	if err != nil {
		return nil, err
	}
	var reader io.Reader
	if sent != nil {
		reader = bytes.NewReader(sent)
	}
	req, err := http.NewRequestWithContext(ctx, method, srv.URL+path, reader)
	if err != nil {
		return nil, err
	}
	setHeaders(req, srv, step, sent != nil, vars)
	resp, err := srv.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	if watch && resp.StatusCode == http.StatusOK {
		a.body = readEvents(resp.Body, step, limit)
		return a, nil
	}
	body := io.Reader(resp.Body)
	if resp.Header.Get("Content-Encoding") == "gzip" { // a step requested it
		if body, err = gzip.NewReader(resp.Body); err != nil {
			return nil, err
		}
	}
	a.raw, err = io.ReadAll(body)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	a.body = parse(a.raw, resp.Header.Get("Content-Type"))
	return a, nil
}

func setHeaders(req *http.Request, srv Server, step *Step, hasBody bool, vars map[string]string) {
	h := req.Header
	if step.Accept == nil {
		h.Set("Accept", "application/json")
	} else {
		h["Accept"] = []string{*step.Accept}
		if *step.Accept == "" {
			delete(h, "Accept")
		}
	}
	h.Set("User-Agent", "parity/1")
	h.Set("Accept-Encoding", "identity") // as the recorder did
	if step.Agent != nil {               // an empty one is sent as none
		h.Set("User-Agent", *step.Agent)
	}
	if hasBody {
		h.Set("Content-Type", "application/json")
		if step.Type != "" {
			h.Set("Content-Type", step.Type)
		}
	}
	if step.As != "none" {
		h.Set("Authorization", "Bearer "+srv.Token)
	}
	if step.As != "" && step.As != "none" && step.As != "admin" {
		h.Set("Impersonate-User", fill(step.As, vars))
	}
	// A header that is sent twice is listed twice, in different case; the order is that of the
	// file, upper case first.
	set := map[string]bool{}
	for _, k := range slices.Sorted(maps.Keys(step.Headers)) {
		if c := http.CanonicalHeaderKey(k); !set[c] {
			set[c] = true
			h.Del(c)
		}
		h.Add(k, fill(step.Headers[k], vars))
	}
}

func bodyOf(step *Step, vars map[string]string) ([]byte, error) {
	if len(step.Body) == 0 || string(step.Body) == "null" {
		return nil, nil
	}
	if step.Body[0] == '"' {
		var s string
		if err := json.Unmarshal(step.Body, &s); err != nil {
			return nil, err
		}
		if step.Base64 {
			return base64.StdEncoding.DecodeString(s)
		}
		return []byte(fill(s, vars)), nil
	}
	return []byte(fill(string(spaced(step.Body)), vars)), nil
}

// spaced writes a JSON value on one line with a blank after each comma and colon, as
// it was sent when the answers were recorded: messages cite the start of a body.
func spaced(value []byte) []byte {
	out := make([]byte, 0, len(value))
	inString, escaped := false, false
	for _, c := range value {
		switch {
		case inString:
			out = append(out, c)
			inString = escaped || c != '"'
			escaped = c == '\\' && !escaped
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case c == ',' || c == ':':
			out = append(out, c, ' ')
		default:
			out = append(out, c)
			inString = c == '"'
		}
	}
	return out
}

// busyFor is the time in which a busy server must reach the wanted state.
const busyFor = 2 * time.Minute

// silence returns how long no event comes where a watch has brought all that are wanted.
func (s *Step) silence() time.Duration {
	if s.Seconds > 0 {
		return time.Duration(s.Seconds * float64(time.Second))
	}
	return 3 * time.Second
}

// waits returns how long the step waits, however fast the server is.
func (s *Step) waits() time.Duration {
	asleep := time.Duration(s.Sleep * float64(time.Second))
	if wanted, _ := s.Want.Body.([]any); !strings.HasPrefix(s.Do, "WATCH ") || len(wanted) >= max(s.Events, 1) {
		return asleep
	}
	silence := s.silence()
	if m := lasts.FindStringSubmatch(s.Do); m != nil { // the server ends it
		seconds, _ := strconv.Atoi(m[1]) // the pattern holds few digits only
		silence = min(silence, time.Duration(seconds)*time.Second)
	}
	return asleep + silence
}

// lasts returns the duration of a watch.
var lasts = regexp.MustCompile(`[?&]timeoutSeconds=(\d{1,6})(&|$)`)

// readEvents reads the events of a step. Expected ones may take a while; within the time of the step
// no others may come.
func readEvents(r io.Reader, step *Step, limit *time.Timer) any {
	silence := step.silence()
	wanted, _ := step.Want.Body.([]any)
	events := []any{}
	br := bufio.NewReaderSize(r, 1<<20)
	for n := max(step.Events, 1); len(events) < n; {
		if len(events) == len(wanted) {
			limit.Reset(silence)
		}
		line, err := br.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			var v any
			if json.Unmarshal([]byte(line), &v) != nil {
				v = line
			}
			events = append(events, v)
		}
		if err != nil {
			break
		}
	}
	return events
}

func parse(raw []byte, contentType string) any {
	if len(raw) == 0 {
		return nil
	}
	ct, _, _ := strings.Cut(contentType, ";")
	switch {
	case strings.Contains(ct, "protobuf"), strings.Contains(ct, "cbor"):
		return map[string]any{"base64bytes": true, "prefix": fmt.Sprintf("%x", raw[:min(4, len(raw))])}
	case strings.Contains(ct, "json"):
		var v any
		if json.Unmarshal(raw, &v) == nil {
			return v
		}
	}
	// A body of another type is compared as JSON where it is an object.
	if raw[0] == '{' {
		var v any
		if json.Unmarshal(raw, &v) == nil {
			return v
		}
	}
	return string(raw)
}

func save(step *Step, got *answer, vars map[string]string) {
	for name, path := range step.Save {
		for _, v := range at(got.body, path) {
			switch v := v.value.(type) {
			case string:
				vars[name] = v
			case float64:
				vars[name] = strings.TrimSuffix(fmt.Sprintf("%.0f", v), ".0")
			case bool:
				vars[name] = fmt.Sprint(v)
			}
		}
	}
}

func fill(s string, vars map[string]string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		s = strings.ReplaceAll(s, "${"+k+"}", vars[k])
	}
	return s
}
