//go:build unix

package traffic

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// watcher is a client that knows the state of a scope from a list or a streaming list, and follows it through all servers
// in turn.
type watcher struct {
	*client
	scope    history.Scope
	selector history.Selector
	served   kind // a custom resource in another version than usual; empty: as kindOf has it
	streams  bool // begins with streaming lists
	number   int  // of the register whose name it selects
	named    bool // the selector is a name, which changes with the generations of objects
	slow     bool
	bare     bool // its watches have no version
	patient  bool // its watches are long, and end only with their time
	at       uint64
	listed   bool
}

func (t *Traffic) startWatches() {
	n := 0
	for i := range 2 * registered {
		k, ns := register(i)
		w := &watcher{scope: history.Scope{Resource: k.resource, Namespace: ns}, streams: i >= registered, named: true}
		w.client = t.client(fmt.Sprintf("name-watch-%d", i), protocols[i%2], false)
		w.number = i % registered
		t.readers.Go(w.run)
	}
	for i, k := range kinds {
		for j, ns := range Namespaces {
			for _, on := range []bool{false, true} {
				p := protocols[n/2%2]
				w := &watcher{scope: history.Scope{Resource: k.resource, Namespace: ns}, selector: history.Selector{On: on, Way: n}, streams: (i+j+n)%2 == 0, slow: n%4 == 3}
				if k.resource == widgets.resource && on { // one in each version
					w.selector, w.served = history.Selector{Side: true}, widgetVersions[j]
				}
				w.client = t.client(fmt.Sprintf("watch-%d", n), p, w.slow)
				n++
				t.readers.Go(w.run)
			}
		}
	}
	for n, k := range wideKinds {
		for m, form := range []history.Form{history.Whole, history.Partial, history.Table} {
			w := &watcher{scope: history.Scope{Resource: k.resource}, selector: history.Selector{Off: m == 2}, streams: n == m%2 && form != history.Table} // a Table cannot stream
			w.client = t.client(fmt.Sprintf("wide-watch-%d-%d", n, m), protocols[(n+m)%2], false)
			w.client.form = form
			t.readers.Go(w.run)
		}
	}
	for n, form := range []history.Form{history.Partial, history.Table, history.Protobuf, history.Protobuf} {
		k := []kind{configMaps, configMaps, configMaps, leases}[n]
		w := &watcher{scope: history.Scope{Resource: k.resource, Namespace: Namespaces[n%2]}, selector: history.Selector{On: n < 3}, streams: n%2 == 0}
		w.client = t.client(fmt.Sprintf("form-watch-%d", n), protocols[n%2], false)
		w.client.form = form
		t.readers.Go(w.run)
	}
	for n := range 4 {
		w := &watcher{scope: history.Scope{Resource: kinds[n].resource, Namespace: Namespaces[n%2]}, selector: history.Selector{On: n > 1}, bare: true}
		w.client = t.client(fmt.Sprintf("bare-watch-%d", n), protocols[n%2], false)
		t.readers.Go(w.again)
	}
	for n, node := range nodes {
		w := &watcher{scope: history.Scope{Resource: pods.resource, Namespace: Namespaces[n]}, selector: history.Selector{Node: node, On: n == 0}, streams: n == 1}
		w.client = t.client("watch-"+node, protocols[n], false)
		t.readers.Go(w.run)
	}
	for n, elsewhere := range []history.Selector{{Node: nodes[0], Not: true}, {Side: true, Not: true}, {Phase: phases[1]}, {Phase: phases[1], Not: true}} {
		w := &watcher{scope: history.Scope{Resource: []kind{pods, widgets, pods, pods}[n].resource, Namespace: Namespaces[n%2]}, selector: elsewhere, streams: n%2 == 1}
		w.client = t.client(fmt.Sprintf("watch-elsewhere-%d", n), protocols[n%2], false)
		t.readers.Go(w.run)
	}
	for n := range 3 {
		w := &watcher{scope: history.Scope{Resource: configMaps.resource, Namespace: Namespaces[n%2]}, patient: true}
		w.client = t.client(fmt.Sprintf("patient-watch-%d", n), protocols[n%2], false)
		w.client.server = n // each begins at another server
		t.readers.Go(w.run)
	}
}

// again begins anew until the round ends.
func (w *watcher) again() {
	defer w.http.CloseIdleConnections()
	for w.final.Load() == 0 && w.ctx.Err() == nil {
		w.watch(0, false)
	}
}

// run follows the scope until the end of the round.
func (w *watcher) run() {
	defer w.http.CloseIdleConnections()
	for !w.over(w.at) {
		if !w.listed && w.named {
			w.selector.Name = w.gens.some(w.round, w.number)
		}
		switch {
		case !w.listed && w.streams:
			w.watch(0, true)
		case !w.listed:
			l := w.list(w.ctx, &history.List{Scope: w.scope, Selector: w.selector, Served: w.served.apiVersion, Match: []history.Match{history.Latest, history.Any}[w.rand.IntN(2)]}, 0)
			if l.Outcome == history.OK {
				w.listed, w.at = true, l.Pages[0].Version
			} else {
				w.rest(w.ctx)
			}
		default:
			if v := w.someVersion(w.client); !w.patient && v != 0 && v < w.at && w.rand.IntN(6) == 0 {
				w.watch(v, false) // from an older revision, which is not the watcher's position
			}
			w.watch(w.at, false)
			if w.rand.IntN(8) == 0 && w.final.Load() == 0 {
				w.listed = false // as a client that starts again
			}
		}
	}
	if final := w.final.Load(); w.at < final {
		w.rec.Stuck(fmt.Sprintf("%s of %s/%s %s is at version %d when all is quiet at %d", w.name, w.scope.Resource, w.scope.Namespace, w.selector, w.at, final))
	}
}

// watch follows one stream to its end.
func (w *watcher) watch(from uint64, initial bool) {
	seconds := 3 + w.rand.IntN(6) // a bookmark comes two seconds before the end
	if w.patient && w.final.Load() == 0 {
		seconds = 25
	}
	q := scopeQuery(w.selector)
	q.Set("watch", "1")
	unmarked := w.bare && w.rand.IntN(2) == 0
	if !unmarked {
		q.Set("allowWatchBookmarks", "true")
	}
	q.Set("timeoutSeconds", strconv.Itoa(seconds))
	match, asked := history.Latest, uint64(0)
	switch {
	case initial:
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", "NotOlderThan")
		switch newest := w.newest.Load(); w.rand.IntN(4) {
		case 0:
			match = history.Any
			q.Set("resourceVersion", "0")
		case 1, 2:
			if newest != 0 {
				match, asked = history.NotOlder, newest
				q.Set("resourceVersion", strconv.FormatUint(newest, 10))
			}
		}
	case !w.bare:
		q.Set("resourceVersion", strconv.FormatUint(from, 10))
	case w.rand.IntN(2) == 0:
		match = history.Any
		q.Set("resourceVersion", "0")
	}
	s := &history.Stream{Client: w.name, Server: w.next(), Protocol: string(w.proto), Scope: w.scope, Selector: w.selector, From: from, Initial: initial, Bare: w.bare, Match: match, Asked: asked, Form: w.form, Patient: w.patient, Slow: w.slow, Unmarked: unmarked, Seconds: seconds, Call: w.rec.Now()}
	k := servedAs(w.scope.Resource, w.served.apiVersion)
	if s.Form == history.Whole && k.custom() {
		s.Served = k.apiVersion
	}
	ctx, cancel := context.WithTimeout(w.ctx, time.Duration(seconds)*time.Second+requestTime)
	defer cancel()
	defer func() {
		s.End = w.rec.Now()
		w.rec.Add(s)
	}()
	resp, err := w.open(ctx, s.Server, http.MethodGet, k.path(w.scope.Namespace, "")+"?"+q.Encode(), "", "")
	if err != nil {
		s.Reason = err.Error()
		w.rest(w.ctx)
		return
	}
	defer resp.Body.Close()
	s.Code, s.Begun = resp.StatusCode, w.rec.Now()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		if s.Reason = message(body); resp.StatusCode == http.StatusGone && from == w.at {
			w.listed = false
		}
		if history.Faulty(resp.StatusCode) {
			w.rec.Stuck(fmt.Sprintf("a watch that breaks no rule is refused: %s", s))
		}
		w.rest(w.ctx)
		return
	}
	w.take(ctx, s, resp.Body)
}

// take reads the events of a stream.
func (w *watcher) take(ctx context.Context, s *history.Stream, body io.Reader) {
	follows := s.Initial || s.From == w.at && !s.Bare
	ended := !s.Initial
	at := s.From
	lines := bufio.NewReaderSize(body, 4<<10)
	most := 1 << 30
	if !w.patient && w.rand.IntN(2) == 0 {
		most = 1 + w.rand.IntN(40) // events, after which the client goes to the next server
	}
	for {
		if ended && len(s.Events) >= most && w.final.Load() == 0 {
			s.Reason = "the client goes on elsewhere"
			return
		}
		line, err := w.event(lines)
		if err != nil { // a line that is not whole is no event
			s.Reason, s.Over = err.Error(), len(line) == 0 && errors.Is(err, io.EOF)
			return
		}
		e, err := w.parseEvent(line)
		if err != nil {
			s.Reason = "not an event: " + err.Error()
			e.Type = "INVALID"
		}
		e.At = w.rec.Now()
		s.Events = append(s.Events, e)
		switch e.Type {
		case "INVALID":
			return
		case "ERROR":
			if s.Reason = fmt.Sprintf("error %d", e.Code); e.Code == http.StatusGone && follows {
				w.listed = false
			}
			return
		case "BOOKMARK":
			ended = ended || e.Ends
		}
		if v := e.Item.State.Version; ended && v > at {
			at = v
			if follows {
				w.at, w.listed = at, true
			}
			if e.Type != "BOOKMARK" {
				w.saw(v)
			}
		}
		if w.over(at) && (follows || w.ctx.Err() != nil) {
			s.Reason = "the round is over"
			return
		}
		if w.slow && w.final.Load() == 0 && w.rand.IntN(25) == 0 {
			sleep(ctx, time.Duration(w.rand.IntN(2500))*time.Millisecond)
		}
	}
}

// event reads the next event of a watch, as JSON. If the stream ends within an event, it returns the rest with the error.
func (w *watcher) event(r *bufio.Reader) ([]byte, error) {
	switch w.form {
	case history.Protobuf:
		return protobufLine(r)
	case history.CBOR:
		return cborLine(r)
	}
	return r.ReadBytes('\n')
}

func (t *Traffic) parseEvent(line []byte) (e history.Event, err error) {
	var text struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(line, &text); err != nil {
		return e, err
	}
	e.Type = text.Type
	var table tableRows
	if bytes.Contains(text.Object, []byte(`"rows":`)) {
		if err := json.Unmarshal(text.Object, &table); err != nil {
			return e, err
		}
	}
	if len(table.Rows) == 1 {
		text.Object = table.Rows[0].Object
	}
	switch e.Type {
	case "ERROR":
		var status struct{ Code int }
		err := json.Unmarshal(text.Object, &status)
		e.Code = status.Code
		return e, err
	case "BOOKMARK":
		var mark struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal(text.Object, &mark); err != nil {
			return e, err
		}
		e.Ends = mark.Metadata.Annotations["k8s.io/initial-events-end"] == "true"
	}
	item, err := t.parsed.Parse(text.Object)
	if err != nil {
		return e, err
	}
	if e.Item = *item; e.Item.State.Version == 0 {
		err = fmt.Errorf("%.200s has no version", line)
	}
	return e, err
}
