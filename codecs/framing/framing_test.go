package framing_test

import (
	"bytes"
	"compress/gzip"
	stdjson "encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	stockcbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/util/framer"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/codecs/protobuf"
)

// TestError reads the error frame of each form back the way clients do.
func TestError(t *testing.T) {
	status := &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old <resource> version"}
	for _, mediaType := range []string{codecs.JSON, codecs.Protobuf, codecs.CBOR} {
		frame, err := framing.AppendError(nil, mediaType, status)
		if err != nil {
			t.Fatal(err)
		}
		var event metav1.WatchEvent
		got := &metav1.Status{}
		switch mediaType {
		case codecs.JSON:
			if err := stdjson.Unmarshal(frame, &event); err != nil {
				t.Fatal(err)
			}
			if err := stdjson.Unmarshal(event.Object.Raw, got); err != nil {
				t.Fatal(err)
			}
		case codecs.Protobuf:
			body := make([]byte, 4096)
			n, err := framer.NewLengthDelimitedFrameReader(io.NopCloser(bytes.NewReader(frame))).Read(body)
			if err != nil {
				t.Fatal(err)
			}
			if err := event.Unmarshal(body[:n]); err != nil {
				t.Fatal(err)
			}
			if _, err := (protobuf.Codec{}).Decode(event.Object.Raw, got, codecs.Strict); err != nil {
				t.Fatal(err)
			}
		case codecs.CBOR:
			scheme := runtime.NewScheme()
			metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
			s := stockcbor.NewSerializer(scheme, scheme, stockcbor.Transcode(false))
			if _, _, err := s.Decode(frame, &schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}, &event); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Decode(event.Object.Raw, nil, got); err != nil {
				t.Fatal(err)
			}
		}
		if event.Type != "ERROR" || got.Message != status.Message || got.Code != 410 || got.Kind != "Status" || status.Kind != "" {
			t.Errorf("%s: %v %v", mediaType, event.Type, got)
		}
	}
	if _, err := framing.AppendError(nil, codecs.YAML, status); err == nil {
		t.Error("a YAML watch has no frames")
	}
}

func TestBody(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", framing.CompressFrom/16)
	for _, tc := range []struct {
		name, accept string
		gate         bool
		pieces       []string
		zipped       bool
	}{
		{"small", "gzip", true, []string{"a", "b"}, false},
		{"nothing", "gzip", true, nil, false},
		{"exactly the limit", "gzip", true, []string{big}, false},
		{"one over the limit", "gzip", true, []string{big + "x"}, true},
		{"in pieces", "deflate, gzip", true, []string{"a", big, "b"}, true},
		{"gate off", "gzip", false, []string{big + "x"}, false},
		{"not asked for", "", true, []string{big + "x"}, false},
		{"with a weight, as stock servers", "gzip;q=1", true, []string{big + "x"}, false},
	} {
		for range 2 { // the second one gets a used compressor
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept-Encoding", tc.accept)
			body := framing.NewBody(w, r, 202, tc.gate)
			for _, p := range tc.pieces {
				if n, err := io.WriteString(body, p); n != len(p) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := body.Close(); err != nil {
				t.Fatal(err)
			}
			var content io.Reader = w.Body
			if (w.Header().Get("Content-Encoding") == "gzip") != tc.zipped || (w.Header().Get("Vary") != "") != tc.zipped || w.Code != 202 {
				t.Fatalf("%s: %d %v", tc.name, w.Code, w.Header())
			}
			if tc.zipped {
				var err error
				if content, err = gzip.NewReader(w.Body); err != nil {
					t.Fatal(err)
				}
			}
			got, err := io.ReadAll(content)
			if err != nil || string(got) != strings.Join(tc.pieces, "") {
				t.Fatalf("%s: %d bytes, %v", tc.name, len(got), err)
			}
		}
	}
}
