// Package yaml is the YAML wire form.
//
// It promises: YAML 1.1 is read as stock servers read it (y and no are booleans, only the
// first document counts) and then treated as JSON; output has sorted keys.
package yaml

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
)

// Codec implements codecs.Codec for application/yaml.
type Codec struct{}

var _ codecs.Codec = Codec{}

// MediaType is application/yaml.
func (Codec) MediaType() string { return codecs.YAML }

// ToJSON converts the first document of data, dropping all but the last of
// repeated keys.
func ToJSON(data []byte) ([]byte, error) { return yaml.YAMLToJSON(data) }

// ToJSONStrict converts the first document of data, or tells which keys repeat.
func ToJSONStrict(data []byte) ([]byte, error) { return yaml.YAMLToJSONStrict(data) }

// Kind reads kind and API version.
func (Codec) Kind(data []byte) (schema.GroupVersionKind, error) {
	converted, err := ToJSON(data)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return json.Codec{}.Kind(converted)
}

// Decode reads the first document of data into obj. A repeated key is a problem in
// the words of the YAML reader, one line for each.
func (Codec) Decode(data []byte, obj runtime.Object, s codecs.Strictness) ([]string, error) {
	converted, err := ToJSON(data)
	if err != nil {
		return nil, err
	}
	var problems []string
	if s != codecs.Ignore {
		if _, err := ToJSONStrict(data); err != nil {
			problems = append(problems, err.Error())
		}
	}
	found, err := json.Codec{}.Decode(converted, obj, s)
	if err != nil {
		return nil, err
	}
	return append(problems, found...), nil
}

// Encode appends obj as a YAML document.
func (Codec) Encode(dst []byte, obj runtime.Object) ([]byte, error) {
	data, err := json.Codec{}.Encode(nil, obj)
	if err != nil {
		return dst, err
	}
	return FromJSON(dst, data)
}
