package answers_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	stockcbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	stockprotobuf "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/objects"
)

// scheme knows the kinds of the libraries.
var scheme = sample.Scheme()

var (
	whole    schema.GroupVersionKind
	metadata = schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"}
	metalist = schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadataList"}
	asTable  = schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "Table"}
)

// encoded returns a value as the libraries encode it in a wire form. Lists and objects of
// custom resources are maps, which have no Protobuf.
func encoded(t *testing.T, as codecs.Form, v any) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch as.Type {
	case codecs.JSON:
		enc := json.NewEncoder(&out)
		if as.Pretty {
			enc.SetIndent("", "  ")
		}
		if err = enc.Encode(v); as.Pretty {
			out.Truncate(out.Len() - 1)
		}
	case codecs.YAML:
		var text []byte
		text, err = yaml.Marshal(v)
		out.Write(text)
	case codecs.Protobuf:
		err = stockprotobuf.NewSerializer(nil, nil).Encode(v.(runtime.Object), &out)
	case codecs.CBOR:
		obj, isObject := v.(runtime.Object)
		if !isObject {
			return encoded(t, codecs.Form{Type: codecs.JSON}, v)
		}
		err = stockcbor.NewSerializer(scheme, scheme).Encode(obj, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// same compares two bodies byte by byte, except where the order of members differs from that of the
// libraries: CBOR, and the metadata of custom resources, which is sent as stored.
func same(t *testing.T, k *kind, as codecs.Form, got, want []byte) string {
	t.Helper()
	switch {
	case as.Type == codecs.CBOR:
		return cmp.Diff(fromCBOR(t, want), fromCBOR(t, got))
	case as.Type == codecs.JSON && as.As != whole && k.custom():
		return cmp.Diff(fromJSON(t, want), fromJSON(t, got))
	}
	if bytes.Equal(got, want) {
		return ""
	}
	return cmp.Diff(string(want), string(got))
}

// fromCBOR decodes a body; JSON is decoded as it is.
func fromCBOR(t *testing.T, body []byte) any {
	t.Helper()
	if !bytes.HasPrefix(body, []byte{0xd9, 0xd9, 0xf7}) {
		return fromJSON(t, body)
	}
	var tree any
	if err := direct.Unmarshal(body, &tree); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return fromJSON(t, text)
}

func fromJSON(t *testing.T, body []byte) (tree any) {
	t.Helper()
	if err := json.Unmarshal(body, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// formsOf returns all that a kind can be negotiated to.
func formsOf(k *kind, list bool) (all []codecs.Form) {
	part := metadata
	if list {
		part = metalist
	}
	for _, mediaType := range []string{codecs.JSON, codecs.YAML, codecs.Protobuf, codecs.CBOR} {
		for _, as := range []schema.GroupVersionKind{whole, part, asTable} {
			switch {
			case as == asTable && (mediaType == codecs.Protobuf || mediaType == codecs.CBOR):
			case as == whole && mediaType == codecs.Protobuf && k.custom():
			default:
				all = append(all, codecs.Form{Type: mediaType, As: as})
				if mediaType == codecs.JSON {
					all = append(all, codecs.Form{Type: mediaType, As: as, Pretty: true})
				}
			}
		}
	}
	return all
}

func name(as codecs.Form) string {
	pretty := ""
	if as.Pretty {
		pretty = "-pretty"
	}
	return fmt.Sprintf("%s%s/%s", as.Type, pretty, as.As.Kind)
}

// each runs a test of every kind in every form.
func each(t *testing.T, list bool, test func(t *testing.T, k *kind, as codecs.Form)) {
	for _, k := range allKinds(t) {
		for _, as := range formsOf(k, list) {
			t.Run(k.name+"/"+name(as), func(t *testing.T) { test(t, k, as) })
		}
	}
}

// TestItem: the answer with one object equals that of the libraries, with a Content-Length except
// for tables and pretty JSON.
func TestItem(t *testing.T) {
	each(t, false, func(t *testing.T, k *kind, as codecs.Form) {
		a := k.answers()
		for i, it := range k.items {
			want := encoded(t, as, k.shown(t, as.As, i))
			for range 2 { // made, and kept
				q, w := k.request("")
				if err := a.Item(q, as, 201, it); err != nil {
					t.Fatal(err)
				}
				if diff := same(t, k, as, w.Body.Bytes(), want); diff != "" {
					t.Error(diff)
				}
				checkHeader(t, w, as, 201)
				streamed := as.As == asTable || as.Type == codecs.JSON && as.Pretty
				if announced := w.Header().Get("Content-Length") != ""; announced == streamed {
					t.Errorf("length announced: %v", announced)
				}
			}
		}
	})
}

// TestPage: a list equals that of the libraries, however many items it has.
func TestPage(t *testing.T) {
	each(t, true, func(t *testing.T, k *kind, as codecs.Form) {
		a := k.answers()
		for n := range len(k.items) + 1 {
			for _, next := range []string{"", "token"} {
				p := &objects.Page{Revision: 1234, Items: slices.Clone(k.items[:n]), Continue: next, Remaining: -1}
				if next != "" {
					p.Remaining = 7
				}
				want := encoded(t, as, k.list(t, as.As, p))
				q, w := k.request("")
				if err := a.Page(q, as, p); err != nil {
					t.Fatal(err)
				}
				if diff := same(t, k, as, w.Body.Bytes(), want); diff != "" {
					t.Errorf("%d items: %s", n, diff)
				}
				checkHeader(t, w, as, 200)
			}
		}
	})
}

func checkHeader(t *testing.T, w *httptest.ResponseRecorder, as codecs.Form, code int) {
	t.Helper()
	h := w.Header()
	if w.Code != code || h.Get("Content-Type") != as.Type {
		t.Errorf("%d, %s", w.Code, h.Get("Content-Type"))
	}
	length := h.Get("Content-Length")
	if length != "" && length != strconv.Itoa(w.Body.Len()) {
		t.Errorf("%d bytes, Content-Length %s", w.Body.Len(), length)
	}
	if length == "" && !as.Pretty && as.As == whole && (as.Type == codecs.JSON || as.Type == codecs.Protobuf) {
		t.Error("no length")
	}
}

// TestEvent: a frame of a watch holds the object in its form; tables define their columns
// once.
func TestEvent(t *testing.T) {
	each(t, false, func(t *testing.T, k *kind, as codecs.Form) {
		if as.Type == codecs.YAML || as.Pretty {
			return // no watch is negotiated so
		}
		a := k.answers()
		q, _ := k.request("")
		v, err := a.View(q, as)
		if err != nil {
			t.Fatal(err)
		}
		for i, it := range k.items {
			frame, err := v.Event("ADDED", it, i == 0)
			if err != nil {
				t.Fatal(err)
			}
			eventType, object := event(t, as, frame)
			shown := k.shown(t, as.As, i)
			if table, ok := shown.(*metav1.Table); ok && i > 0 && !k.r.Columns.Repeated {
				table.ColumnDefinitions = nil
			}
			want := encoded(t, as, shown)
			if as.Type == codecs.JSON {
				want = bytes.TrimSuffix(want, []byte("\n"))
			}
			if diff := same(t, k, as, object, want); diff != "" || eventType != "ADDED" {
				t.Error(eventType, diff)
			}
			before, object, behind, ok := v.EventParts("ADDED", it)
			if whole := as.Type == codecs.JSON && as.As.Kind == "" && objects.Clean(k.r, it); ok != whole {
				t.Errorf("the frame has parts: %t", ok)
			}
			if ok && (&object[0] != &it.JSON()[0] || !bytes.Equal(slices.Concat(before, object, behind), frame)) {
				t.Errorf("the parts of the frame are %q, %q and %q", before, object, behind)
			}
		}
		frame, err := v.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Message: "gone"})
		if err != nil {
			t.Fatal(err)
		}
		eventType, object := event(t, as, frame)
		want := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 410, Message: "gone"}
		if diff := same(t, k, as, bytes.TrimSpace(object), bytes.TrimSpace(encoded(t, as, want))); diff != "" || eventType != "ERROR" {
			t.Error(eventType, diff)
		}
	})
}

// event takes a frame apart, as a client does.
func event(t *testing.T, as codecs.Form, frame []byte) (eventType string, object []byte) {
	t.Helper()
	switch as.Type {
	case codecs.JSON:
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(frame, &e); err != nil || !bytes.HasSuffix(frame, []byte("\n")) {
			t.Fatalf("%v: %q", err, frame)
		}
		return e.Type, e.Object
	case codecs.Protobuf:
		var e metav1.WatchEvent
		if n := int(binary.BigEndian.Uint32(frame)); n != len(frame)-4 {
			t.Fatalf("%d bytes of %d", n, len(frame)-4)
		}
		if err := e.Unmarshal(frame[4:]); err != nil {
			t.Fatal(err)
		}
		return e.Type, e.Object.Raw
	}
	tree, _ := fromCBOR(t, frame).(map[string]any)
	object, err := json.Marshal(tree["object"])
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(tree["type"]), object
}
