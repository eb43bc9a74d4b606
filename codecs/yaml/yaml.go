// Package yaml is the YAML wire form.
//
// It promises: YAML 1.1 is read as stock servers read it (y and no are booleans, only the
// first document counts) and then treated as JSON; output has sorted keys.
package yaml

import (
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json"
)

// Codec implements codecs.Codec for application/yaml.
type Codec struct {
	JSON json.Codec // the codec between which and YAML it converts
}

var (
	_ codecs.Codec     = Codec{}
	_ codecs.Converter = Codec{}
)

// MediaType returns application/yaml.
func (Codec) MediaType() string { return codecs.YAML }

// ToJSON converts the first document of data, dropping all but the last of
// repeated keys. Large JSON stays as it is.
func ToJSON(data []byte) ([]byte, error) {
	if _, err := fits(data); err != nil {
		return nil, err
	}
	if isLargeJSON(data) {
		return data, nil
	}
	return yaml.YAMLToJSON(data)
}

// isLargeJSON reports whether to read a YAML body as JSON: the YAML reader takes some 400 bytes for each
// value.
func isLargeJSON(data []byte) bool { return budget.Large(len(data)) && stdjson.Valid(data) }

// Weigh implements codecs.Codec.
func (Codec) Weigh(data []byte, obj runtime.Object) (int64, error) {
	values, err := fits(data)
	if err != nil {
		return 0, err
	}
	if isLargeJSON(data) {
		return json.Codec{}.Weigh(data, obj)
	}
	if t := reflect.TypeOf(obj); budget.Recursive(t) && len(data) > 2048 {
		converted, err := yaml.YAMLToJSON(data)
		if err == nil {
			err = budget.Nested(converted, t)
			return budget.Weight(values, t), err
		}
	}
	return max(budget.Weight(min(values, len(data)/2), reflect.TypeOf(obj)), int64(values)*perValue), nil
}

// Kind reads kind and API version.
func (c Codec) Kind(data []byte) (schema.GroupVersionKind, error) {
	d, err := c.Convert(data, codecs.Ignore)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return d.Kind(nil)
}

// Decode reads the first document of data into obj. A repeated key is a problem in
// the words of the YAML reader, one line for each of the first hundred.
func (c Codec) Decode(data []byte, obj runtime.Object, s codecs.Strictness) ([]string, error) {
	d, err := c.Convert(data, s)
	if err != nil {
		return nil, err
	}
	return d.Decode(nil, obj, s)
}

// document is a Codec for one document, which has been converted.
type document struct {
	Codec
	json     []byte
	problems []string
}

// Convert implements codecs.Converter. Only a document with repeated keys is converted
// twice: once to find them, and once without minding.
func (c Codec) Convert(data []byte, s codecs.Strictness) (codecs.Codec, error) {
	if _, err := fits(data); err != nil {
		return nil, err
	}
	if isLargeJSON(data) {
		return c.JSON, nil
	}
	if s != codecs.Ignore {
		converted, err := yaml.YAMLToJSONStrict(data)
		if err == nil {
			return document{Codec: c, json: converted}, nil
		}
		again, other := yaml.YAMLToJSON(data)
		if other != nil {
			return nil, other
		}
		return document{Codec: c, json: again, problems: []string{first(err.Error())}}, nil
	}
	converted, err := yaml.YAMLToJSON(data)
	return document{Codec: c, json: converted}, err
}

// Kind implements codecs.Codec.
func (d document) Kind([]byte) (schema.GroupVersionKind, error) { return d.JSON.Kind(d.json) }

// Decode implements codecs.Codec.
func (d document) Decode(_ []byte, obj runtime.Object, s codecs.Strictness) ([]string, error) {
	found, err := d.JSON.Decode(d.json, obj, s)
	if err != nil {
		return nil, err
	}
	if s == codecs.Ignore {
		return found, nil
	}
	return append(slices.Clip(d.problems), found...), nil
}

// first keeps the first lines of a text that has one for each repeated key: as many as
// the reader of JSON names.
func first(text string) string {
	const most = 100
	lines := strings.SplitN(text, "\n", most+2)
	return strings.Join(lines[:min(len(lines), most+1)], "\n")
}

// Encode appends obj as a YAML document.
func (c Codec) Encode(dst []byte, obj runtime.Object) ([]byte, error) {
	data, err := c.JSON.Encode(nil, obj)
	if err != nil {
		return dst, err
	}
	return c.FromJSON(dst, data)
}
