package forms_test

import (
	"bytes"
	stdjson "encoding/json"
	"io"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	stockcbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/util/framer"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
	"github.com/rowlock/rowlock/codecs/protobuf"
)

// TestTable: every form that is announced has the codec of its name, and lists are in the order
// in which stock servers announce them.
func TestTable(t *testing.T) {
	for _, f := range []forms.Forms{{}, {CBOR: true}} {
		for _, mediaType := range f.Types() {
			if got := f.Codec(mediaType).MediaType(); got != mediaType {
				t.Errorf("%s is written as %s", mediaType, got)
			}
		}
	}
	for name, c := range map[string]struct{ got, want []string }{
		"types":        {forms.Forms{}.Types(), []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}},
		"types, cbor":  {forms.Forms{CBOR: true}.Types(), []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor"}},
		"custom":       {forms.Forms{}.CustomTypes(), []string{"application/json", "application/yaml"}},
		"custom, cbor": {forms.Forms{CBOR: true}.CustomTypes(), []string{"application/json", "application/yaml", "application/cbor"}},
		"lists": {forms.Forms{}.ListTypes(), []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
			"application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"}},
		"lists, cbor": {forms.Forms{CBOR: true}.ListTypes(), []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor",
			"application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch", "application/cbor-seq"}},
		"patches": {forms.Forms{}.PatchTypes(false), []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"}},
		"patches, custom, cbor": {forms.Forms{CBOR: true}.PatchTypes(true), []string{"application/json-patch+json", "application/merge-patch+json",
			"application/apply-patch+yaml", "application/apply-patch+cbor"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q", name, c.got)
		}
	}
}

// TestError reads the error frame of each form back the way clients do.
func TestError(t *testing.T) {
	status := &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old <resource> version"}
	for _, mediaType := range []string{codecs.JSON, codecs.Protobuf, codecs.CBOR} {
		frame, err := codecs.AppendError(nil, forms.Forms{}.Streamer(mediaType), status)
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
	if s := (forms.Forms{}).Streamer(codecs.YAML); s != nil {
		t.Error("a YAML watch has frames")
	}
}
