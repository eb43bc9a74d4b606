package metadata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/kinds"
)

var scanSeeds = []string{
	`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"x":"y","q\"":"\u0041"}},"spec":{"nodeName":"n1","hostNetwork":true}}`,
	`{"apiVersion":"v1","kind":"X","metadata":{}}`,
	`{"metadata":{"resourceVersion":"3","uid":"u"},"kind":"X"}`,
	`{"metadata":{"name":"x","uid":"u","resourceVersion":"3","z":1}}`,
	`{"metadata":{"labels":{},"name":"x"}}`,
	` { "metadata" : { "name" : "x" } } `,
	`{"metadata":{"name":"x"`, `{"metadata":null}`, `[]`, `{}`, ``, `{"a":1e5,"b":-0.5,"c":[1,[],{}],"metadata":{"uid":""}}`,
}

func FuzzCheck(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var obj map[string]json.RawMessage
		want := json.Unmarshal(b, &obj) == nil && obj != nil
		if got := check(b) == nil; got != want {
			t.Fatalf("check(%q) = %v, encoding/json says %v", b, got, want)
		}
	})
}

func FuzzSplice(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(s), int64(42))
	}
	f.Fuzz(func(t *testing.T, b []byte, revision int64) {
		if check(b) != nil || repeats(b) {
			return
		}
		out, head, err := Splice(nil, b, revision)
		if err != nil {
			return
		}
		for _, probable := range []int64{revision, revision ^ 1, revision / 10} {
			draft, err := NewDraft(b, probable)
			if err != nil {
				t.Fatalf("%q: %v", b, err)
			}
			line, at, ok := draft.Complete(revision)
			if ok != (len(strconv.FormatInt(probable, 10)) == len(strconv.FormatInt(revision, 10))) || ok && (!bytes.Equal(line, out) || at != head) {
				t.Fatalf("%q: a draft with %d becomes %q, %d, %t; not %q, %d", b, probable, line, at, ok, out, head)
			}
		}
		var want, got map[string]any
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q -> %q: %v", b, out, err)
		}
		want["metadata"].(map[string]any)["resourceVersion"] = strconv.FormatInt(revision, 10)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q -> %q: %s", b, out, diff)
		}
		out = out[:len(out)-1]
		if head < 1 || head > len(out) {
			t.Fatalf("head %d of %q", head, out)
		}
		if !json.Valid(append([]byte("{"), out[head:]...)) {
			t.Fatalf("body %q", out[head:])
		}
	})
}

// repeats reports whether an object has a member twice, or one only equal when unescaped: which of
// them wins is undefined.
func repeats(b []byte) bool {
	found := false
	var walk func(i int) int
	walk = func(i int) int {
		seen := map[string]bool{}
		return scan.Loose.Members(b, i, func(name scan.Name, at int) (int, bool) {
			found = found || seen[string(name.In(b))] || name.Has&scan.Escaped != 0
			seen[string(name.In(b))] = true
			if at < len(b) && b[at] == '{' {
				return walk(at), true
			}
			return skip(b, at, 0), true
		})
	}
	walk(scan.Space(b, 0))
	return found
}

func FuzzMeta(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(s))
	}
	st := &kinds.Storage{Fields: []kinds.SelectableField{
		{Label: "spec.nodeName", Path: []string{"spec", "nodeName"}},
		{Label: "spec.hostNetwork", Path: []string{"spec", "hostNetwork"}, Default: "false"},
		{Label: "type", Path: []string{"type"}},
	}}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Scan(b, st)
		if err == nil && len(m.Fields) != 3 {
			t.Fatal("fields are missing")
		}
		if err != nil && check(b) == nil && json.Unmarshal(b, &struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}{}) == nil && !repeats(b) {
			t.Fatalf("Scan(%q): %v", b, err)
		}
	})
}

func TestScan(t *testing.T) {
	st := &kinds.Storage{Fields: []kinds.SelectableField{
		{Label: "spec.nodeName", Path: []string{"spec", "nodeName"}},
		{Label: "spec.hostNetwork", Path: []string{"spec", "hostNetwork"}, Default: "false"},
		{Label: "spec.restartPolicy", Path: []string{"spec", "restartPolicy"}},
		{Label: "type", Path: []string{"type"}},
		{Label: "size", Func: func(b []byte) string { return strconv.Itoa(len(b)) }},
	}}
	b := []byte(`{"kind":"Pod","metadata":{"name":"a","uid":"u1","creationTimestamp":"c","deletionTimestamp":"d",` +
		`"labels":{"x":"y","e":"\u0041b"},"managedFields":[{"fieldsV1":{"f:labels":{}}}]},` +
		`"spec":{"containers":[{"nodeName":"no"}],"nodeName":"n1","restartPolicy":null},"type":"T"}`)
	m, err := Scan(b, st)
	if err != nil {
		t.Fatal(err)
	}
	if m.UID != "u1" || m.CreationTimestamp != "c" || !m.Deleting {
		t.Errorf("meta %+v", m)
	}
	if diff := cmp.Diff(map[string]string{"x": "y", "e": "Ab"}, map[string]string(m.Labels)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"n1", "false", "", "T", strconv.Itoa(len(b))}, m.Fields); diff != "" {
		t.Error(diff)
	}
}

// TestScanReadsNoFurther: members behind those with selectable fields are not read: writers wait while an object is scanned, and a
// status may have megabytes.
func TestScanReadsNoFurther(t *testing.T) {
	st := &kinds.Storage{Fields: []kinds.SelectableField{
		{Label: "spec.color", Path: []string{"spec", "color"}},
		{Label: "spec.size", Path: []string{"spec", "size"}},
	}}
	const head = `{"apiVersion":"example.com/v1","kind":"Shirt","metadata":{"name":"a"},`
	for text, further := range map[string]bool{
		head + `"spec":{"color":"blue","size":"L"},"status":?`: false,
		head + `"other":{},"spec":{"color":"blue"},"status":?`: false,
		head + `"status":?`: true,
	} {
		if m, err := Scan([]byte(text), st); (err != nil) != further || !further && m.Fields[0] != "blue" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// check returns an error unless b is one JSON object.
func check(b []byte) error {
	i := scan.Space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return fmt.Errorf("%w: no object", errSyntax)
	}
	end := skip(b, i, 0)
	if end < 0 || scan.Space(b, end) != len(b) {
		return errSyntax
	}
	return nil
}

// TestYields: making a draft of a large object lets other goroutines continue. Splice does not.
func TestYields(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	value := fmt.Appendf(nil, `{"metadata":{"name":"a"},"text":"%s"}`, strings.Repeat("x", 2<<20))
	room := make([]byte, 0, len(value)+100)
	const rounds = 20
	interrupted := func(work func() error) (n int) {
		for range rounds {
			var ran atomic.Bool
			done := make(chan struct{})
			go func() {
				ran.Store(true)
				close(done)
			}()
			if err := work(); err != nil {
				t.Fatal(err)
			}
			if ran.Load() {
				n++
			}
			<-done
		}
		return n
	}
	if n := interrupted(func() error { _, err := NewDraft(value, 7); return err }); n < rounds {
		t.Errorf("another goroutine continued in %d of %d drafts", n, rounds)
	}
	if n := interrupted(func() error { _, _, err := Splice(room, value, 7); return err }); n == rounds { // the runtime may interrupt some
		t.Error("another goroutine always continues during Splice")
	}
}
