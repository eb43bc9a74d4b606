package verbs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// event is what tests look at in a watch event.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Kind     string            `json:"kind"`
		Code     int               `json:"code"`
		Metadata metav1.ObjectMeta `json:"metadata"`
		Data     map[string]string `json:"data"`
	} `json:"object"`
}

func (e event) String() string {
	return fmt.Sprintf("%s %s=%s@%s", e.Type, e.Object.Metadata.Name, e.Object.Data["v"], e.Object.Metadata.ResourceVersion)
}

// added words the event of an object of fill's as it was made.
func (s *site) added(name string) string {
	return fmt.Sprintf("ADDED %s=1@%d", name, s.Cache.Get("configmaps", "ns", name).Revision)
}

func TestWatchOverTheWire(t *testing.T) {
	s := newSite(t)
	before := fill(t, s)
	now, first := s.Cache.Revision(), s.added("a")
	for _, tc := range []struct {
		query string
		want  string
	}{
		{fmt.Sprint("resourceVersion=", before), fmt.Sprintf("MODIFIED b=2@%d, ADDED f=1@%d", now-1, now)},
		{fmt.Sprint("labelSelector=k%3Dx&resourceVersion=", before), fmt.Sprintf("DELETED b=1@%d, ADDED f=1@%d", now-1, now)},
		{fmt.Sprint("labelSelector=k%3Dy&resourceVersion=", before), fmt.Sprintf("ADDED b=2@%d", now-1)},
		{fmt.Sprint("fieldSelector=metadata.name%3Df&resourceVersion=", before), fmt.Sprintf("ADDED f=1@%d", now)},
		{"fieldSelector=metadata.name%3Da&resourceVersion=0", first},
		{"fieldSelector=metadata.name%3Da", first},
		{"fieldSelector=metadata.name%3Da&allowWatchBookmarks=true", fmt.Sprintf("%s, BOOKMARK =@%d", first, now)},
		{"resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", ""},
	} {
		_, _, b := s.fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=1&"+tc.query)
		if all := events(t, b); all != tc.want {
			t.Errorf("%s: %s, want %s", tc.query, all, tc.want)
		}
	}
}

// Who asks for lists of metadata is accepted, and cut off by the first event.
func TestWatchForLists(t *testing.T) {
	s := newSite(t)
	before := fill(t, s)
	const lists = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	for _, query := range []string{"", "&resourceVersion=0", fmt.Sprint("&resourceVersion=", before)} {
		start := time.Now()
		code, _, b := s.fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=600"+query, "Accept", lists)
		if code != http.StatusOK || len(b) > 0 || time.Since(start) > time.Minute {
			t.Errorf("%q: %d %q after %v", query, code, b, time.Since(start))
		}
	}
}

// Below /watch/ the options are those of a list, unless they say otherwise: what
// there is comes first, but nothing says where it ends.
func TestOldPathsOfWatches(t *testing.T) {
	s := newSite(t)
	fill(t, s)
	now, first := s.Cache.Revision(), s.added("a")
	const old = "/api/v1/watch/namespaces/ns/configmaps?timeoutSeconds=1&fieldSelector=metadata.name%3Da"
	for _, tc := range []struct {
		query string
		code  int
		want  string
	}{
		{"&allowWatchBookmarks=true", 200, first},
		{"&allowWatchBookmarks=true&resourceVersion=0&watch=false", 200, first},
		{"&allowWatchBookmarks=true&watch=true", 200, fmt.Sprintf("%s, BOOKMARK =@%d", first, now)},
		{"&continue=x&limit=1", 200, first},
		{"&resourceVersion=0&resourceVersionMatch=NotOlderThan", 200, first},
		{"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0", 422, "sendInitialEvents is forbidden for list"},
		{"&resourceVersionMatch=Exact&watch=1", 422, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"},
	} {
		code, _, b := s.fetch(t, old+tc.query)
		if code != tc.code || code != 200 && !strings.Contains(string(b), tc.want) {
			t.Errorf("%s: %d %s", tc.query, code, b)
		}
		if code != 200 {
			continue
		}
		if all := events(t, b); all != tc.want {
			t.Errorf("%s: %s, want %s", tc.query, all, tc.want)
		}
	}
}

// Only the first table of a watch says what its columns are, be it of an object that
// was there or of a change.
func TestColumnsOfAWatch(t *testing.T) {
	s := newSite(t)
	before := fill(t, s)
	builtin := s.Cache.Snapshot("apiservices.apiregistration.k8s.io").Len()
	for _, name := range []string{"v1.one", "v1.two"} {
		s.put(t, "apiservices.apiregistration.k8s.io", "", name, `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"name":"`+name+`"}}`)
	}
	for path, want := range map[string]string{
		"/api/v1/namespaces/ns/configmaps?resourceVersion=0":                    "100000",
		fmt.Sprint("/api/v1/namespaces/ns/configmaps?resourceVersion=", before): "10",
		// Those of the built-in groups come first.
		"/apis/apiregistration.k8s.io/v1/apiservices?resourceVersion=0":                    strings.Repeat("1", builtin+2),
		fmt.Sprint("/apis/apiregistration.k8s.io/v1/apiservices?resourceVersion=", before): "11",
	} {
		_, _, b := s.fetch(t, path+"&watch=1&timeoutSeconds=1", "Accept", asTable)
		got := ""
		for line := range bytes.Lines(b) {
			var e struct {
				Object struct{ ColumnDefinitions []any }
			}
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			got += fmt.Sprint(min(1, len(e.Object.ColumnDefinitions)))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// events words the events of a body.
func events(t *testing.T, body []byte) string {
	t.Helper()
	var got []string
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		var e event
		if err := d.Decode(&e); err == io.EOF {
			return strings.Join(got, ", ")
		} else if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		got = append(got, e.String())
	}
}

func TestWatchOfLostHistory(t *testing.T) {
	s := newSiteWith(t, sqlstore.Config{Retention: 10 * time.Millisecond, CompactEvery: 10 * time.Millisecond})
	fill(t, s)
	s.compacted(t, s.Cache.Revision())
	s.forget(t)
	code, _, b := s.fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=1&resourceVersion=2")
	var e event
	if err := json.Unmarshal(b, &e); err != nil || code != 200 || e.Type != "ERROR" || e.Object.Code != 410 {
		t.Errorf("%d %s", code, b)
	}
}

// TestWatchOfTheFuture waits for the version that initial events are to be of, and
// ends with an error, as the request itself was good.
func TestWatchOfTheFuture(t *testing.T) {
	s := newSite(t)
	code, _, b := s.fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=9&resourceVersion=1000&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	var e event
	if err := json.Unmarshal(b, &e); err != nil || code != 200 || e.Type != "ERROR" || e.Object.Code != 504 {
		t.Errorf("%d %s", code, b)
	}
	if code, _, b := s.fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=-1"); code != 200 || len(b) > 0 {
		t.Errorf("a watch whose time is up before it begins: %d %s", code, b)
	}
}

// TestWatchFromTheTable reads changes that memory has never seen.
func TestWatchFromTheTable(t *testing.T) {
	s := newSite(t)
	before := fill(t, s)
	s.forget(t)
	_, _, b := s.fetch(t, fmt.Sprint("/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=1&labelSelector=k%3Dx&resourceVersion=", before))
	if n := strings.Count(string(b), "\n"); n != 2 || !strings.Contains(string(b), `"type":"DELETED"`) {
		t.Errorf("%s", b)
	}
}

func TestWatchInProtobuf(t *testing.T) {
	s := newSite(t)
	before := fill(t, s)
	_, header, b := s.fetch(t, fmt.Sprint("/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=1&resourceVersion=", before), "Accept", codecs.Protobuf)
	if got := header.Get("Content-Type"); got != "application/vnd.kubernetes.protobuf;stream=watch" {
		t.Error(got)
	}
	var got []string
	for len(b) > 0 {
		n := binary.BigEndian.Uint32(b)
		var e metav1.WatchEvent
		if err := e.Unmarshal(b[4 : 4+n]); err != nil {
			t.Fatal(err)
		}
		var unknown runtime.Unknown
		cm := &corev1.ConfigMap{}
		if err := unknown.Unmarshal(e.Object.Raw[len(protobuf.Prefix):]); err != nil {
			t.Fatal(err)
		}
		if err := cm.Unmarshal(unknown.Raw); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Type+" "+unknown.Kind+" "+cm.Name+"="+cm.Data["v"])
		b = b[4+n:]
	}
	if fmt.Sprint(got) != "[MODIFIED ConfigMap b=2 ADDED ConfigMap f=1]" {
		t.Error(got)
	}
}

func TestWatchOnAWebSocket(t *testing.T) {
	s := newSite(t)
	before := fill(t, s)
	ws, err := websocket.Dial(strings.Replace(s.URL, "http", "ws", 1)+
		fmt.Sprint("/api/v1/namespaces/ns/configmaps?watch=1&resourceVersion=", before), "", s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for _, want := range []string{"MODIFIED b=2", "ADDED f=1"} {
		var text string
		if err := websocket.Message.Receive(ws, &text); err != nil {
			t.Fatal(err)
		}
		var e event
		if err := json.Unmarshal([]byte(text), &e); err != nil || !strings.HasPrefix(e.String(), want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
	revision := s.put(t, "configmaps", "ns", "g", configMap("g", "", "live"))
	var e event
	if err := websocket.JSON.Receive(ws, &e); err != nil || e.String() != fmt.Sprintf("ADDED g=live@%d", revision) {
		t.Errorf("%v %v", e, err)
	}
}

func TestWatchIsLive(t *testing.T) {
	s := newSite(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/configmaps?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 20 {
		revision := s.put(t, "configmaps", "ns", "a", configMap("a", "", fmt.Sprint(i)))
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Object.Metadata.ResourceVersion != fmt.Sprint(revision) {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
	}
}

// TestBookmarks runs a watch of ten minutes in no time.
func TestBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := kinds.NewCatalogue(builtin.Resources())
		c := cache.New(catalogue)
		apply := func(revision int64, storage string) {
			c.Apply([]sqlstore.Change{{Row: sqlstore.Row{
				Key: sqlstore.Key{Resource: storage, Namespace: "ns", Name: "a"}, Revision: revision, Value: []byte(configMap("a", "", "1")),
			}}})
		}
		apply(1, "configmaps")
		h := inMemory(catalogue, c)
		start := time.Now()
		go func() {
			time.Sleep(90 * time.Second)
			apply(2, "secrets") // progress that the watch has no event of
			time.Sleep(60 * time.Second)
			apply(3, "configmaps")
		}()
		w := &timed{ResponseRecorder: httptest.NewRecorder(), start: start}
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet,
			"/api/v1/configmaps?watch=1&resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=330", nil)
		h.ServeHTTP(w, r)
		want := "[1m0s BOOKMARK =@1 2m0s BOOKMARK =@2 2m30s MODIFIED a=1@3 3m0s BOOKMARK =@3 4m0s BOOKMARK =@3 5m0s BOOKMARK =@3 5m28s BOOKMARK =@3]"
		if fmt.Sprint(w.events) != want {
			t.Errorf("%v\nwant %s", w.events, want)
		}
		if lasted := time.Since(start); lasted != 330*time.Second {
			t.Errorf("lasted %v", lasted)
		}
	})
}

// timed notes when events were written.
type timed struct {
	*httptest.ResponseRecorder
	start  time.Time
	events []string
}

func (w *timed) Write(b []byte) (int, error) {
	var e event
	if err := json.Unmarshal(b, &e); err != nil {
		return 0, err
	}
	w.events = append(w.events, time.Since(w.start).String(), e.String())
	return len(b), nil
}

// TestDeadlinesOnHTTP2 sees that a watch that has nothing to write lives on, and
// that one whose client takes nothing ends.
func TestDeadlinesOnHTTP2(t *testing.T) {
	for _, tc := range []struct {
		stuck bool
		lasts time.Duration
	}{{false, 300 * time.Second}, {true, 31 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			catalogue := kinds.NewCatalogue(builtin.Resources())
			c := cache.New(catalogue)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/configmaps?watch=1&resourceVersion=1&timeoutSeconds=300", nil)
			r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
			time.AfterFunc(time.Second, func() {
				c.Apply([]sqlstore.Change{{Row: sqlstore.Row{
					Key: sqlstore.Key{Resource: "configmaps", Namespace: "ns", Name: "a"}, Revision: 2, Value: []byte(configMap("a", "", "1")),
				}}})
			})
			w := &deadlined{ResponseRecorder: httptest.NewRecorder(), stuck: tc.stuck, cut: make(chan struct{})}
			began := time.Now()
			inMemory(catalogue, c).ServeHTTP(w, r)
			if lasted := time.Since(began); lasted != tc.lasts {
				t.Errorf("stuck %v: the watch lasted %v", tc.stuck, lasted)
			}
		})
	}
}

// deadlined is the writer of a stream. A stuck one takes the beginning, and then
// nothing until it is cut.
type deadlined struct {
	*httptest.ResponseRecorder
	stuck bool
	begun bool
	cut   chan struct{}
}

func (w *deadlined) SetWriteDeadline(t time.Time) error {
	if t.After(time.Now()) {
		return errors.New("a deadline ends an idle stream as well")
	}
	close(w.cut)
	return nil
}

func (w *deadlined) FlushError() error {
	if begun := w.begun; !w.stuck || !begun {
		w.begun = true
		return nil
	}
	<-w.cut
	return os.ErrDeadlineExceeded
}
