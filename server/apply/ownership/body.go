package ownership

import (
	stdjson "encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
)

// ReadTree reads the body of an apply, YAML or JSON. A number without fraction and exponent becomes an int64 if it fits,
// as in decoded objects; a float64 would be no integer to the schemas of custom resources, and lose digits. An empty
// body is an object without fields.
func ReadTree(body []byte) (map[string]any, error) {
	tree := map[string]any{}
	if isLargeJSON(body) {
		if err := utiljson.Unmarshal(body, &tree); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding JSON: %v", err))
		}
		return tree, nil
	}
	err := yaml.Unmarshal(body, &tree, func(d *stdjson.Decoder) *stdjson.Decoder {
		d.UseNumber()
		return d
	})
	if err == nil {
		err = utiljson.ConvertMapNumbers(tree, 0)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if tree == nil {
		tree = map[string]any{}
	}
	return tree, nil
}

// isLargeJSON reports whether to read a body as JSON and not as YAML, which takes some 400 bytes for each value.
func isLargeJSON(body []byte) bool { return budget.Large(len(body)) && stdjson.Valid(body) }

// RepeatedFields finds fields that the body of an apply has twice, which a stock server
// looks for after the apply was merged. They are warnings under codecs.Warn, and a 400
// under codecs.Strict.
func RepeatedFields(codec jsoncodec.Codec, body []byte, s codecs.Strictness) (warnings []string, err error) {
	if s == codecs.Ignore {
		return nil, nil
	}
	if codec.DecodeClean(body, &unstructured.Unstructured{}) {
		return nil, nil // JSON without a repeated name: most of them, and much faster
	}
	if isLargeJSON(body) {
		problems, err := codec.Decode(body, &unstructured.Unstructured{}, codecs.Strict)
		if err == nil && len(problems) > 0 && s == codecs.Strict {
			err = apierrors.NewBadRequest("error strict decoding JSON: " + strings.Join(problems, ", "))
		}
		return problems, err
	}
	err = yaml.UnmarshalStrict(body, &map[string]any{})
	if err == nil {
		return nil, nil
	}
	if s == codecs.Strict {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", err))
	}
	return []string{err.Error()}, nil
}
