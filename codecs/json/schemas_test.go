package json_test

import (
	stdjson "encoding/json"
	"math/rand"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/sample"
)

// TestSchemas compares the encoders and decoders of schemas with those that their types have.
func TestSchemas(t *testing.T) {
	newDefinition := func() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} }
	r := rand.New(rand.NewSource(3))
	for _, schema := range []string{
		`{}`, `null`, `[]`, `"x"`,
		`{"properties":{"a":{"type":"string","maximum":1.5e3,"minimum":-2},"b":{"properties":{"c":{"items":{"items":{"type":"object","properties":{"d":{"enum":[1,"<x>",{"y":[null]}]}}}}}}}}}`,
		`{"properties":{"a":{"type":"string"},"a":{"type":"object"}}}`, `{"properties":null}`, `{"properties":{}}`, `{"properties":{"a":null}}`,
		`{"items":null}`, `{"items":[]}`, `{"items":[{"type":"string"},{"items":[{"type":"integer"}]}]}`, `{"items":7}`, `{"items":{"nothing":1}}`, `{"items":{"Type":"x"}}`,
		`{"additionalProperties":true}`, `{"additionalProperties":false}`, `{"additionalProperties":null}`, `{"additionalProperties":"x"}`,
		`{"additionalProperties":{"additionalProperties":{"type":"string","x-kubernetes-preserve-unknown-fields":true}}}`, `{"additionalItems":{"type":"x","type":"y"}}`,
		`{"default":{"b":1,"a":[1.0,2e400,"\u2028"]},"example":null,"enum":[null, 1 , "a\nb"]}`, `{"default":[<]}`,
		`{"dependencies":{"a":["b"],"c":{"type":"string"}},"definitions":{"x":{"not":{"anyOf":[{},{"oneOf":[{"pattern":"<&>"}]}]}}},"patternProperties":{"^x":{"externalDocs":{"url":"u"}}}}`,
		`{"x-kubernetes-validations":[{"rule":"self.a","message":"m","reason":"FieldValueInvalid","optionalOldSelf":false}],"x-kubernetes-list-map-keys":["a"]}`,
		strings.Repeat(`{"items":`, 40) + `{"type":"string"}` + strings.Repeat(`}`, 40),
		strings.Repeat(`{"properties":{"a":`, 70) + `{"type":"string"}` + strings.Repeat(`}}`, 70),
		strings.Repeat(`{"additionalProperties":`, 300) + `true` + strings.Repeat(`}`, 300),
	} {
		data := []byte(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"a","creationTimestamp":null},"spec":{"group":"b","names":{"plural":"c","kind":"D"},"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` +
			schema + `}}]},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}}`)
		sameDecode(t, data, newDefinition)
		if obj := newDefinition(); stdjson.Unmarshal(data, obj) == nil {
			sameEncode(t, obj)
		}
		for range min(15, 4000/len(schema)) {
			damaged := sample.Damage(r, data)
			sameDecode(t, damaged, newDefinition)
			if again := newDefinition(); stdjson.Unmarshal(damaged, again) == nil {
				sameEncode(t, again)
			}
		}
	}
	for _, v := range []any{
		&apiextensionsv1.JSONSchemaProps{Items: &apiextensionsv1.JSONSchemaPropsOrArray{}, AdditionalItems: &apiextensionsv1.JSONSchemaPropsOrBool{}},
		&apiextensionsv1.JSONSchemaProps{Default: &apiextensionsv1.JSON{}, Enum: []apiextensionsv1.JSON{{}, {Raw: []byte(` [1, "<"] `)}}},
		&apiextensionsv1.JSONSchemaProps{Default: &apiextensionsv1.JSON{Raw: []byte(`{`)}},
	} {
		sameEncode(t, v)
	}
}
