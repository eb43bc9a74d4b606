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
	"github.com/rowlock/rowlock/server/kinds/custom"
)

// Digests tell schemas of versions apart, by the names of the versions.
type Digests map[string]custom.Digest

// Read reads a stored definition without the schemas of its versions, which are nearly all of
// it: of them there are digests.
func Read(c codec.Codec, text []byte) (*apiextensionsv1.CustomResourceDefinition, Digests, error) {
	small := make([]byte, 0, 4096)
	of, last := Digests{}, 0
	eachVersion(text, func(version []byte, at int) {
		name := scan.Lookup(version, "name")
		from, to := member(version, "schema")
		if name == nil || from < 0 {
			return
		}
		of[scan.Unquote(name)] = sha256.Sum256(version[from:to])
		small = append(append(small, text[last:at+from]...), "{}"...)
		last = at + to
	})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	_, err := c.Decode(append(small, text[last:]...), crd, codecs.Ignore)
	return crd, of, err
}

// ruleWeight is for how many bytes of text a rule of a schema, or the expression of its message,
// counts besides its own: compiled it takes some 40 KB, however short it is.
const ruleWeight = 1500

// readVersion reads one version of a stored definition, with its schema, and says how many
// bytes that has, to which its rules are added.
func readVersion(text []byte, name string) (v *apiextensionsv1.CustomResourceDefinitionVersion, size int, err error) {
	err = fmt.Errorf("the definition has no version %s", name)
	eachVersion(text, func(version []byte, _ int) {
		if v == nil && scan.Unquote(scan.Lookup(version, "name")) == name {
			rules := bytes.Count(version, []byte(`"rule":"`)) + bytes.Count(version, []byte(`"messageExpression":"`))
			v, size = &apiextensionsv1.CustomResourceDefinitionVersion{}, len(version)+rules*ruleWeight
			err = json.Unmarshal(version, v)
		}
	})
	return v, size, err
}

// schemaText is the schema of a version of a stored definition, or nil.
func schemaText(text []byte, name string) (schema []byte) {
	eachVersion(text, func(version []byte, _ int) {
		if schema == nil && scan.Unquote(scan.Lookup(version, "name")) == name {
			schema = scan.Lookup(version, "schema", "openAPIV3Schema")
		}
	})
	return schema
}

// eachVersion calls fn with the text of each version, and where in the whole text it begins.
func eachVersion(text []byte, fn func(version []byte, at int)) {
	from, to := member(text, "spec", "versions")
	if from < 0 {
		return
	}
	scan.Loose.Elements(text[:to], from, func(at int) (int, bool) {
		end := scan.Skip(text, at)
		if end >= 0 {
			fn(text[at:end], at)
		}
		return end, true
	})
}

// member is where the value at a path of member names stands in a text; from is -1 if it is
// not there.
func member(text []byte, path ...string) (from, to int) {
	from, to = scan.Space(text, 0), len(text)
	for _, want := range path {
		at, end := -1, -1
		scan.Loose.Members(text, from, func(name scan.Name, value int) (int, bool) {
			after := scan.Skip(text, value)
			if string(name.In(text)) != want {
				return after, true
			}
			at, end = value, after
			return after, false
		})
		if from, to = at, end; at < 0 || end < 0 {
			return -1, -1
		}
	}
	return from, to
}
