package server

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamljson "sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/protobuf"
)

// auditedAnswer turns an answer that is no JSON into JSON for an audit event. Lists
// in Protobuf are left out.
func (s *Server) auditedAnswer(mediaType string, body []byte) []byte {
	var out []byte
	var err error
	switch mediaType {
	case codecs.YAML:
		out, err = yamljson.YAMLToJSON(body)
	case codecs.CBOR:
		u := &unstructured.Unstructured{Object: map[string]any{}}
		if _, err = (cbor.Codec{}).Decode(body, u, codecs.Ignore); err == nil {
			out, err = json.Marshal(u.Object)
		}
	case codecs.Protobuf:
		out, err = s.fromProtobuf(body)
	}
	if err != nil {
		return nil
	}
	return out
}

func (s *Server) fromProtobuf(body []byte) ([]byte, error) {
	var envelope runtime.Unknown
	if len(body) < 4 {
		return nil, nil
	}
	if err := envelope.Unmarshal(body[4:]); err != nil {
		return nil, err
	}
	r := s.cfg.Catalogue.LookupKind(schema.FromAPIVersionAndKind(envelope.APIVersion, envelope.Kind))
	if r == nil {
		return nil, nil
	}
	obj := r.New()
	if _, err := (protobuf.Codec{}).Decode(body, obj, codecs.Ignore); err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}
