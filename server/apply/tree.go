package apply

import (
	stdjson "encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// ReadTree reads the body of an apply, YAML or JSON. A number that is written without
// fraction and exponent is an int64 where it fits, as in objects that come otherwise; a
// float64 would be none to the schemas of custom resources, and lose digits.
// Nothing at all is an object without fields.
func ReadTree(body []byte) (map[string]any, error) {
	tree := map[string]any{}
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
