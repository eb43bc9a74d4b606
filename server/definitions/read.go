package definitions

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/codecs"
	codec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/kinds/apiextensions"
	"github.com/rowlock/rowlock/server/kinds/custom"
)

// Digests are digests of schemas, by the names of the versions.
type Digests map[string]custom.Digest

// Read reads a stored definition without the schemas of its versions, which are nearly all of
// it: of them there are digests.
func Read(c codec.Codec, text []byte) (*apiextensionsv1.CustomResourceDefinition, Digests, error) {
	of := Digests{}
	small := apiextensions.CutSchemas(text, func(v *apiextensions.Stored) {
		if v.Name != nil {
			of[scan.Unquote(v.Name)] = sha256.Sum256(v.Schema)
		}
	})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	_, err := c.Decode(small, crd, codecs.Ignore)
	crd.ManagedFields = nil // nothing reads them, and they would stay as long as the definition
	return crd, of, err
}

// ruleWeight is added to the bytes of each rule of a schema, and of each message expression: compiled it takes some
// 40 KB, however short it is.
const ruleWeight = 1500

// readVersion reads one version of a stored definition with its schema, and returns the weight of the schema: its
// bytes and its rules.
func readVersion(text []byte, name string) (v *apiextensionsv1.CustomResourceDefinitionVersion, size int, err error) {
	err = fmt.Errorf("the definition has no version %s", name)
	apiextensions.EachVersion(text, func(one *apiextensions.Stored) {
		if version := one.Text; v == nil && scan.Unquote(one.Name) == name {
			rules := bytes.Count(version, []byte(`"rule":"`)) + bytes.Count(version, []byte(`"messageExpression":"`))
			v, size = &apiextensionsv1.CustomResourceDefinitionVersion{}, len(version)+rules*ruleWeight
			err = json.Unmarshal(version, v)
		}
	})
	return v, size, err
}

// schemaText returns the schema of a version of a stored definition, or nil.
func schemaText(text []byte, name string) (schema []byte) {
	apiextensions.EachVersion(text, func(v *apiextensions.Stored) {
		if schema == nil && scan.Unquote(v.Name) == name && v.Schema != nil {
			schema = scan.Lookup(v.Schema, "openAPIV3Schema")
		}
	})
	return schema
}
