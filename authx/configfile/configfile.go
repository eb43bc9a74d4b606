// Package configfile decodes configuration objects of apiserver.config.k8s.io.
//
// It promises: an unknown or duplicate field is an error and not ignored.
package configfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// group is the API group of all configurations.
const group = "apiserver.config.k8s.io"

// Decode reads an object of a kind, in one of some versions, from YAML or JSON. Its
// errors, which are logged, quote nothing of a file that is another one: it may hold
// secrets.
func Decode(data []byte, kind string, versions []string, into any) error {
	known := make([]metav1.TypeMeta, len(versions))
	for i, v := range versions {
		known[i] = metav1.TypeMeta{APIVersion: group + "/" + v, Kind: kind}
	}
	return DecodeAs(data, known, into)
}

// DecodeAs is Decode for an object of one of several kinds, of any group.
func DecodeAs(data []byte, known []metav1.TypeMeta, into any) error {
	asJSON, duplicates := yaml.YAMLToJSONStrict(data)
	if duplicates != nil {
		var err error
		if asJSON, err = yaml.YAMLToJSON(data); err != nil {
			return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
		}
	}
	var head metav1.TypeMeta
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(asJSON, &head); err != nil {
		return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	switch {
	case head.Kind == "":
		return errors.New("Object 'Kind' is missing in the file") //nolint:staticcheck // as clients know it
	case head.APIVersion == "":
		return errors.New("Object 'apiVersion' is missing in the file") //nolint:staticcheck // as clients know it
	case !slices.Contains(known, head):
		return fmt.Errorf("no kind %q is registered for version %q", head.Kind, head.APIVersion)
	}
	problems, err := sigsjson.UnmarshalStrict(asJSON, into)
	if err != nil {
		return err
	}
	if duplicates != nil {
		problems = append([]error{duplicates}, problems...)
	}
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Error()
	}
	return errors.New("strict decoding error: " + strings.Join(texts, ", "))
}
