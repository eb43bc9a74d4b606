//go:build unix

package traffic

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// TestEventsInCBOR: the events of a sequence come one by one. One that is cut is no event, and ends the watch with an error; an item that is
// none is an event that cannot be read.
func TestEventsInCBOR(t *testing.T) {
	t.Parallel()
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"7","generation":70000},"data":{"v":"op1","pad":"` + strings.Repeat("x", 300) + `"}}`
	want, err := history.ParseObject([]byte(object), 0)
	if err != nil {
		t.Fatal(err)
	}
	event, err := toCBOR(`{"type":"ADDED","object":` + object + `}`)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(strings.NewReader("\xd9\xd9\xf7" + event + event + event[:len(event)-1]))
	tr := &Traffic{}
	for range 2 {
		line, err := cborLine(lines)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := tr.parseEvent(line); err != nil || e.Type != "ADDED" || e.Item.State.Hash != want.State.Hash || e.Item.State.Version != 7 || e.Item.State.Generation != 70000 {
			t.Errorf("the event is %+v, %v; want %+v", e, err, want)
		}
	}
	if rest, err := cborLine(lines); len(rest) == 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an event that is cut is %q, %v", rest, err)
	}
	if rest, err := cborLine(bufio.NewReader(strings.NewReader(""))); len(rest) != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the end of a watch is %q, %v", rest, err)
	}
	for name, bad := range map[string]string{"of an indefinite length": "\xbf", "too long": "\x5b\xff\xff\xff\xff\xff\xff\xff\xff", "no map": "\x01", "too deep": strings.Repeat("\x81", mostNested+2)} {
		line, err := cborLine(bufio.NewReader(strings.NewReader(bad)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e, err := tr.parseEvent(line); err == nil {
			t.Errorf("%s: it is an event: %+v", name, e)
		}
	}
}

// TestPlain: a compressed answer is unpacked. One that was not asked for, and one that is wrong, is noted; one without its end is an error.
func TestPlain(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, "content"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Clone(packed.Bytes())
	wrong[len(wrong)-5] ^= 1 // in the checksum
	zipped := http.Header{"Content-Encoding": {"gzip"}}
	for name, c := range map[string]struct {
		header        http.Header
		answer        []byte
		asked         bool
		failed, noted bool
	}{
		"plain":         {http.Header{}, []byte("content"), true, false, false},
		"packed":        {zipped, packed.Bytes(), true, false, false},
		"not asked for": {zipped, packed.Bytes(), false, false, true},
		"wrong":         {zipped, wrong, true, true, true},
		"cut":           {zipped, packed.Bytes()[:packed.Len()-3], true, true, false},
	} {
		rec := history.NewRecorder()
		got, err := (&client{Traffic: &Traffic{rec: rec}, gzip: c.asked}).plain(c.header, "/", c.answer)
		if noted := len(rec.End().Stuck) > 0; noted != c.noted || (err != nil) != c.failed || err == nil && string(got) != "content" {
			t.Errorf("%s: %q, %v, noted: %v", name, got, err, noted)
		}
	}
}

// TestConvert: the webhook moves what the versions of a shift have in different places, and an object has the same hash in each version.
func TestConvert(t *testing.T) {
	t.Parallel()
	first := `{"apiVersion":"` + shifts.apiVersion + `","kind":"Shift","metadata":{"name":"a"},"spec":{"values":{"v":"op1"}}}`
	want, err := history.ParseObject([]byte(first), 7)
	if err != nil {
		t.Fatal(err)
	}
	object := first
	for _, version := range []string{"/v2", "/v1"} {
		w := httptest.NewRecorder()
		convert(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"request":{"uid":"u","desiredAPIVersion":"`+history.CustomGroup+version+`","objects":[`+object+`]}}`)))
		_, text, ok := strings.Cut(w.Body.String(), `"convertedObjects":[`)
		object, _, _ = strings.Cut(text, "],")
		it, err := history.ParseObject([]byte(object), 7)
		if !ok || err != nil || it.State.Hash != want.State.Hash || it.State.Fields["v"] != "op1" || it.Served != history.CustomGroup+version {
			t.Errorf("%s: it is %+v, %v, of %s", version, it, err, w.Body)
		}
	}
	// What was not converted is another object.
	if it, err := history.ParseObject([]byte(strings.Replace(first, "/v1", "/v2", 1)), 7); err != nil || it.State.Hash == want.State.Hash {
		t.Errorf("%+v, %v", it, err)
	}
}
