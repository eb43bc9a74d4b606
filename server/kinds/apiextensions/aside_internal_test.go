package apiextensions

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/e2e/bench/operators"
)

// TestSchemasAside: what is made of a definition without its schemas, and has them put back or filled in,
// is the definition; what has become another one does not fit.
func TestSchemasAside(t *testing.T) {
	texts := [][]byte{
		[]byte(`{}`), []byte(`{"spec":{"versions":[]}}`), []byte(`{"spec":{"versions":[{"name":"v1"},{"name":"v2","schema":{}}]}}`),
		[]byte(`{"spec":{"names":{"kind":"versions","plural":"schema"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"schema":{"type":"string"}}}},"served":true}]},"status":{"versions":[{"schema":1}]}}`),
	}
	set := operators.New(2)
	for i := range 20 {
		d, err := set.At(i)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(d.Body, crd); err != nil {
			t.Fatal(err)
		}
		stored, err := spelling.Append(nil, crd)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, stored)
	}
	for _, stored := range texts {
		cut := SchemasAside.Cut(stored)
		if whole, fit := SchemasAside.Join(cut, stored); !fit || !bytes.Equal(whole, stored) {
			t.Errorf("%.300s\nis put together as %.300s", stored, whole)
		}
		var whole, part apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(stored, &whole); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(cut, &part); err != nil {
			t.Fatalf("%s: %v", cut, err)
		}
		if len(stored) > 10_000 && len(cut) > len(stored)/4 {
			t.Errorf("of %d bytes %d are left", len(stored), len(cut))
		}
		again, err := spelling.Append(nil, &part)
		if err != nil {
			t.Fatal(err)
		}
		if joined, fit := SchemasAside.Join(again, stored); len(stored) > 10_000 && (!fit || !bytes.Equal(joined, stored)) {
			t.Errorf("%.300s\nis written as %.300s", stored, joined)
		}
		if SchemasAside.Fill(&whole, &part); !reflect.DeepEqual(whole, part) {
			t.Errorf("%.300s\nis filled in as %+v", stored, part)
		}
	}
	const two = `{"spec":{"versions":[{"name":"v1","schema":{"a":1}},{"name":"v2"}]}}`
	for _, cut := range []string{
		`{}`, `{"spec":{"versions":[{"name":"v1","schema":{}}]}}`, `{"spec":{"versions":[{"name":"v1","schema":{}},{"name":"v2"},{"name":"v3"}]}}`,
		`{"spec":{"versions":[{"name":"v2","schema":{}},{"name":"v1"}]}}`, `{"spec":{"versions":[{"name":"v1"},{"name":"v2"}]}}`, `{"spec":{"versions":[{"name":"v1","schema":{"b":1}},{"name":"v2"}]}}`,
	} {
		if whole, fit := SchemasAside.Join([]byte(cut), []byte(two)); fit {
			t.Errorf("%s fits, as %s", cut, whole)
		}
	}
}
