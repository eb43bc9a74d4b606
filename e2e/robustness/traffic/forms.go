//go:build unix

package traffic

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	protobufType   = "application/vnd.kubernetes.protobuf"
	protobufStream = protobufType + ";stream=watch"
	yamlType       = "application/yaml"
)

// accepted returns the Accept header for a form; "": none.
func accepted(f history.Form, method, path string) string {
	watch := strings.Contains(path, "watch=1")
	switch {
	case f == history.Table:
		return "application/json;as=Table;g=meta.k8s.io;v=v1"
	case f == history.Partial && method == http.MethodGet && watch:
		return "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	case f == history.Partial && method == http.MethodGet:
		return "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	case f == history.Protobuf && watch:
		return protobufStream
	case f == history.Protobuf:
		return protobufType
	case f == history.YAML:
		return yamlType
	case f == history.CBOR:
		return cborType
	}
	return ""
}

// readable returns a whole answer as JSON. It notes one that cannot be read.
func (t *Traffic) readable(contentType, path string, answer []byte) []byte {
	var converted []byte
	var err error
	switch base, _, _ := strings.Cut(contentType, ";"); base {
	case protobufType:
		converted, err = fromProtobuf(answer)
	case yamlType:
		converted, err = yaml.YAMLToJSON(answer)
	case cborType:
		converted, err = fromCBOR(answer)
	default:
		return answer
	}
	if err != nil {
		t.rec.Stuck(fmt.Sprintf("an answer of %s in %s cannot be read: %v", path, contentType, err))
		return answer
	}
	return converted
}

// fromProtobuf decodes an object or a list, and encodes it as JSON.
func fromProtobuf(data []byte) ([]byte, error) {
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}

// encoded returns an object in JSON as the body of a request in a form.
func encoded(f history.Form, body string) (contentType, text string) {
	switch f {
	case history.Protobuf:
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
		if err != nil {
			panic(err) // of a body that the traffic has made
		}
		var b strings.Builder
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &b); err != nil {
			panic(err)
		}
		return protobufType, b.String()
	case history.YAML:
		text, err := yaml.JSONToYAML([]byte(body))
		if err != nil {
			panic(err)
		}
		return yamlType, string(text)
	case history.CBOR:
		text, err := toCBOR(body)
		if err != nil {
			panic(err)
		}
		return cborType, text
	}
	return plainJSON, body
}

// mostFrame bounds an event in protobuf.
const mostFrame = 16 << 20

// protobufLine reads an event of a watch in protobuf, and returns it as JSON has it.
func protobufLine(r *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > mostFrame {
		return fmt.Appendf(nil, `{"type":"an event of %d bytes"}`, size), nil
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	var e metav1.WatchEvent
	err := e.Unmarshal(frame)
	var object []byte
	if err == nil {
		object, err = fromProtobuf(e.Object.Raw)
	}
	if err != nil {
		return fmt.Appendf(nil, `{"type":%q}`, err.Error()), nil
	}
	return fmt.Appendf(nil, `{"type":%q,"object":%s}`, e.Type, object), nil
}
