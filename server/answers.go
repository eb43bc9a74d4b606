package server

import (
	"encoding/json"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamljson "sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/discovery"
	"github.com/rowlock/rowlock/server/request"
)

// answersObjects reports whether the answer to a request is an object that this server makes: requests for
// resources, and discovery documents.
func answersObjects(i *request.Info) bool {
	return !i.Remote && (i.IsResource || discovery.Serves(i.Path) && !strings.HasPrefix(i.Path, "/version"))
}

// auditedAnswer converts an answer in another form than JSON into JSON for an audit event. It returns nil for
// unknown media types.
func (s *Server) auditedAnswer(mediaType string, body []byte) ([]byte, error) {
	switch mediaType {
	case codecs.YAML:
		return yamljson.YAMLToJSON(body)
	case codecs.CBOR:
		u := &unstructured.Unstructured{Object: map[string]any{}}
		if _, err := (cbor.Codec{}).Decode(body, u, codecs.Ignore); err != nil {
			return nil, err
		}
		return json.Marshal(u.Object)
	case codecs.Protobuf:
		return s.fromProtobuf(body)
	}
	return nil, nil
}

// fromProtobuf converts an object or a list in Protobuf into JSON.
func (s *Server) fromProtobuf(body []byte) ([]byte, error) {
	kind, err := (protobuf.Codec{}).Kind(body)
	if err != nil {
		return nil, err
	}
	if obj := s.emptyOf(kind); obj != nil {
		if _, err := (protobuf.Codec{JSON: s.Cache.JSON()}).Decode(body, obj, codecs.Ignore); err != nil {
			return nil, err
		}
		if list, ok := obj.(*metav1.PartialObjectMetadataList); ok { // items in Protobuf do not carry their kind
			for i := range list.Items {
				list.Items[i].SetGroupVersionKind(kind.GroupVersion().WithKind("PartialObjectMetadata"))
			}
		}
		return s.Cache.JSON().Encode(nil, obj)
	}
	item, isList := strings.CutSuffix(kind.Kind, "List")
	if !isList || s.emptyOf(kind.GroupVersion().WithKind(item)) == nil {
		return nil, fmt.Errorf("the kind %s is not known", kind)
	}
	items := []byte("[")
	newItem := func() runtime.Object { return s.emptyOf(kind.GroupVersion().WithKind(item)) }
	metadata, err := protobuf.List(body, newItem, func(obj runtime.Object) error {
		text, err := s.Cache.JSON().Encode(nil, obj)
		if err != nil {
			return err
		}
		if len(items) > 1 {
			items = append(items, ',')
		}
		if items = append(items, text...); len(items) > s.cfg.Audit.Largest() {
			return framing.ErrTooLong
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(&listOf{TypeMeta: metav1.TypeMeta{Kind: kind.Kind, APIVersion: kind.GroupVersion().String()}, ListMeta: metadata, Items: append(items, ']')})
}

// listOf is a list of any kind.
type listOf struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           json.RawMessage `json:"items"`
}

// emptyOf makes an empty object of a kind that answers hold; nil if the kind has no type.
func (s *Server) emptyOf(kind schema.GroupVersionKind) runtime.Object {
	if r := s.cfg.Catalogue.LookupKind(kind); r != nil && r.HasGoType() {
		return r.New()
	}
	switch {
	case kind.Group == metav1.GroupName && kind.Kind == "PartialObjectMetadata":
		return &metav1.PartialObjectMetadata{}
	case kind.Group == metav1.GroupName && kind.Kind == "PartialObjectMetadataList":
		return &metav1.PartialObjectMetadataList{}
	case kind == autoscalingv1.SchemeGroupVersion.WithKind("Scale"):
		return &autoscalingv1.Scale{}
	case kind == authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"):
		return &authenticationv1.TokenRequest{}
	}
	return discovery.Empty(kind)
}
