package apiextensions

import (
	"crypto/sha256"
	"sync"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/codecs/json"
)

// Checking a schema is most of the cost of a definition, and many definitions have one that was checked
// before: operators repeat them from version to version, and are installed and updated repeatedly. So the
// texts of schemas that passed without any tolerance are remembered. Such a schema is valid in every
// definition, because tolerance only allows more.

// passesKept bounds the remembered schemas: the last ones, and at most as many before them. They take 40
// bytes each.
const passesKept = 4096

// pass is a schema that passed, where the status has an endpoint of its own or where not.
type pass struct {
	text   [sha256.Size]byte
	status bool
}

// passes are schemas that passed. It is safe for concurrent use.
type passes struct {
	mu          sync.Mutex
	now, before map[pass]struct{}
}

var passed passes

// spelling writes schemas, to distinguish them.
var spelling = json.New(json.Settings{})

func (p *passes) has(one pass) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.now[one]
	if !ok {
		if _, ok = p.before[one]; ok {
			p.put(one) // it is in use
		}
	}
	return ok
}

func (p *passes) add(one pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(one)
}

// put adds a pass. The caller holds mu.
func (p *passes) put(one pass) {
	if p.now == nil || len(p.now) >= passesKept {
		p.now, p.before = map[pass]struct{}{}, p.now
	}
	p.now[one] = struct{}{}
}

// schemaTexts are digests of the texts of schemas.
type schemaTexts map[*apiext.CustomResourceValidation][sha256.Size]byte

// textsOf finds the texts of the schemas of in, the internal form of d, where a common schema of all versions
// is at the top. A schema that its text does not identify has none.
func textsOf(d *apiextensionsv1.CustomResourceDefinition, in *apiext.CustomResourceDefinition) schemaTexts {
	all := schemaTexts{}
	var text []byte
	for i := range in.Spec.Versions {
		of := in.Spec.Versions[i].Schema
		if i == 0 && in.Spec.Validation != nil {
			of = in.Spec.Validation
		}
		if of == nil || d.Spec.Versions[i].Schema == nil || saysMore(of.OpenAPIV3Schema) {
			continue
		}
		var err error
		if text, err = spelling.Append(text[:0], d.Spec.Versions[i].Schema); err == nil {
			all[of] = sha256.Sum256(text)
		}
	}
	return all
}

// saysMore reports whether there is anything in a schema that its text leaves out: maps and lists
// with nothing in them, some of which do not pass.
func saysMore(s *apiext.JSONSchemaProps) bool {
	for n := range nodes(s) {
		if emptyMap(n.Properties) || emptyMap(n.PatternProperties) || emptyMap(n.Dependencies) || emptyMap(n.Definitions) ||
			emptyList(n.Enum) || emptyList(n.Required) || emptyList(n.AllOf) || emptyList(n.OneOf) || emptyList(n.AnyOf) ||
			emptyList(n.XListMapKeys) || emptyList(n.XValidations) {
			return true
		}
	}
	return false
}

func emptyMap[V any](m map[string]V) bool { return m != nil && len(m) == 0 }

func emptyList[V any](list []V) bool { return list != nil && len(list) == 0 }
