//go:build unix

package traffic

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// TestForms: an object has the same hash in each form that has all of it.
func TestForms(t *testing.T) {
	t.Parallel()
	text := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"red","resourceVersion":"7","labels":{"on":"yes"},"creationTimestamp":"2026-01-02T03:04:05Z",
"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:v":{}}}}]},"data":{"v":"op1"}}`)
	contentType, message := encoded(history.Protobuf, string(text))
	if contentType != protobufType {
		t.Errorf("the type of a body in Protobuf is %q", contentType)
	}
	want, err := history.ParseObject(text, 0)
	if err != nil {
		t.Fatal(err)
	}
	tr := &Traffic{}
	for _, form := range []history.Form{history.Protobuf, history.YAML, history.CBOR} {
		contentType, body := encoded(form, string(text))
		if it, err := history.ParseObject(tr.readable(contentType, "", []byte(body)), 0); err != nil || it.State.Hash != want.State.Hash {
			t.Errorf("%s: it is %+v, %v; want %+v", form, it, err, want)
		}
	}
	// A whole event, a truncated one, and bytes that are not an event.
	event, err := (&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: []byte(message)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	stream := append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
	lines := bufio.NewReader(bytes.NewReader(append(stream, stream[:20]...)))
	line, err := protobufLine(lines)
	if err != nil {
		t.Fatal(err)
	}
	e, err := tr.parseEvent(line)
	if err != nil || e.Type != "ADDED" || e.Item.State.Hash != want.State.Hash || e.Item.State.Version != 7 {
		t.Errorf("the event is %+v, %v; want %+v", e, err, want)
	}
	if _, err := protobufLine(lines); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the error of an event that is cut is %v", err)
	}
	for name, bad := range map[string][]byte{"long": {0xff, 0, 0, 0}, "wrong": {0, 0, 0, 1, 0xff}} {
		line, err := protobufLine(bufio.NewReader(bytes.NewReader(bad)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e, err := tr.parseEvent(line); err == nil {
			t.Errorf("%s: it is an event: %+v", name, e)
		}
	}
}

// TestAccepted: each form asks for itself.
func TestAccepted(t *testing.T) {
	t.Parallel()
	for form, want := range map[history.Form]string{
		history.Whole: "", history.Protobuf: protobufType, history.YAML: yamlType, history.CBOR: cborType,
		history.Partial: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	} {
		if got := accepted(form, http.MethodGet, "/api/v1/configmaps"); got != want {
			t.Errorf("%q: the header is %q, want %q", form, got, want)
		}
	}
	if got := accepted(history.Protobuf, http.MethodGet, "/api/v1/configmaps?watch=1"); got != protobufStream {
		t.Errorf("the header of a watch is %q", got)
	}
}

// TestTables: a row of a Table begins with the name of its object, and has a cell for each column.
func TestTables(t *testing.T) {
	t.Parallel()
	page := func(columns, cells string) error {
		_, _, err := (&Traffic{}).parsePage([]byte(`{"metadata":{"resourceVersion":"7"},"columnDefinitions":[` + columns + `],"rows":[{"cells":[` + cells + `],"object":{"metadata":{"name":"a","resourceVersion":"5"}}}]}`))
		return err
	}
	if err := page(`{},{}`, `"a",1`); err != nil {
		t.Error(err)
	}
	for cells, columns := range map[string]string{`"b",1`: `{},{}`, `"a"`: `{},{}`, ``: ``} {
		if page(columns, cells) == nil {
			t.Errorf("the cells %s of columns %s are those of a", cells, columns)
		}
	}
}
