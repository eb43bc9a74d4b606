package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/sqlstore"
)

// Put writes an object into the store, past all verbs, and returns its revision.
func (s *Server) Put(resource, namespace, name, value string) int64 {
	s.t.Helper()
	key := sqlstore.Key{Resource: resource, Namespace: namespace, Name: name}
	op := sqlstore.Op{Verb: sqlstore.Create, Key: key, Value: []byte(value)}
	if it := s.Cache.Get(resource, namespace, name); it != nil {
		op.Verb, op.Expect = sqlstore.Update, it.Revision
	}
	out, err := s.Store.Write(context.Background(), op)
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Revisions[0]
}

// Remove takes an object out of the store, past all verbs.
func (s *Server) Remove(resource, namespace, name string) {
	s.t.Helper()
	it := s.Cache.Get(resource, namespace, name)
	if it == nil {
		return
	}
	key := sqlstore.Key{Resource: resource, Namespace: namespace, Name: name}
	if _, err := s.Store.Write(context.Background(), sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: it.Revision, Value: it.JSON()}); err != nil {
		s.t.Fatal(err)
	}
}

// ConfigMap returns an object for Put in namespace ns. Labels are the inside of a JSON object.
func ConfigMap(name, labels, data string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns","uid":"u-%s","labels":{%s}},"data":{"v":%q}}`,
		name, name, labels, data)
}

// PutConfigMaps puts a to e, then changes b, and adds f. It returns the revision of e.
func (s *Server) PutConfigMaps() (before int64) {
	s.t.Helper()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		before = s.Put("configmaps", "ns", name, ConfigMap(name, `"k":"x"`, "1"))
	}
	s.Put("configmaps", "ns", "b", ConfigMap("b", `"k":"y"`, "2"))
	s.Put("configmaps", "ns", "f", ConfigMap("f", `"k":"x"`, "1"))
	return before
}

// Fetch gets a URL without credentials. Headers are names and values in turn.
func Fetch(t testing.TB, url string, header ...string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, b
}

// Event has the parts of a watch event that tests look at.
type Event struct {
	Type   string `json:"type"`
	Object struct {
		Kind     string            `json:"kind"`
		Code     int               `json:"code"`
		Metadata metav1.ObjectMeta `json:"metadata"`
		Data     map[string]string `json:"data"`
	} `json:"object"`
}

// String words an event: "ADDED a=1@7" is an object a with data 1 at revision 7.
func (e Event) String() string {
	return fmt.Sprintf("%s %s=%s@%s", e.Type, e.Object.Metadata.Name, e.Object.Data["v"], e.Object.Metadata.ResourceVersion)
}

// Events words the events of a body, with commas between them.
func Events(t testing.TB, body []byte) string {
	t.Helper()
	var got []string
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		var e Event
		if err := d.Decode(&e); err == io.EOF {
			return strings.Join(got, ", ")
		} else if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		got = append(got, e.String())
	}
}
