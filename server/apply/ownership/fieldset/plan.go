package fieldset

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/server/schema"
)

// Plan is a compiled comparison of two objects of a Go type. It is immutable.
type Plan struct{ root *node }

// Plans compiles plans on first use, and caches them. It is safe for concurrent use; the zero value is ready to use.
type Plans struct {
	known sync.Map // planKey -> *Plan
	mu    sync.Mutex
	nodes map[*schema.Shape]*node
}

type planKey struct {
	typ     reflect.Type
	leftOut string
}

// untracked are fields of metadata without owners.
var untracked = []string{
	"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.creationTimestamp", "metadata.selfLink",
	"metadata.uid", "metadata.clusterName", "metadata.generation", "metadata.managedFields", "metadata.resourceVersion",
}

// Of returns the plan for objects of struct type t, without the fields that leaveOut names and those without
// owners. The error concerns the type.
func (p *Plans) Of(schemas *schema.Schemas, t reflect.Type, leaveOut []string) (*Plan, error) {
	key := planKey{t, ""}
	switch len(leaveOut) {
	case 0:
	case 1:
		key.leftOut = leaveOut[0]
	default:
		key.leftOut = strings.Join(leaveOut, " ")
	}
	if plan, ok := p.known.Load(key); ok {
		return plan.(*Plan), nil
	}
	shape, err := schemas.Of(t)
	if err != nil {
		return nil, fmt.Errorf("planning field ownership of %v: %w", t, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes == nil {
		p.nodes = make(map[*schema.Shape]*node)
	}
	plan := &Plan{p.compile(shape).without(slices.Concat(untracked, leaveOut))}
	p.known.Store(key, plan)
	return plan, nil
}

// node is the compiled comparison of the values of one type, derived from a schema.Shape. Nodes are immutable and may be
// recursive.
type node struct {
	form   form
	fields []nodeField // of formStruct
	elem   *node       // of formMap, formSet, formKeyed, and of atomic lists and maps
	keys   []nodeKey   // of formKeyed
	codec  ownCodec
	plain  bool // a map from strings to strings

	// inner is the form inside of a value that has one owner.
	inner form
}

type form uint8

const (
	formScalar      form = iota
	formAtomic           // a struct, map or list with one owner; see inner
	formStruct           // each field has owners
	formMap              // each entry has owners
	formSet              // a list of scalars, each with owners
	formKeyed            // a list of structs that have keys, each with owners
	formList             // a list inside of an atomic value
	formUnsupported      // only the library can handle it
)

type nodeField struct {
	element   string // the path element "f:name", escaped for JSON
	index     []int
	omitEmpty bool
	omitZero  bool
	*node
}

// nodeKey is a key field of the items of a keyed list.
type nodeKey struct {
	prefix    string // `\"name\":`, as in an escaped path element
	index     []int
	fallback  string // the default, encoded; "" for none
	omitEmpty bool
}

// ownCodec names the types that encode themselves.
type ownCodec uint8

const (
	codecNone ownCodec = iota
	codecTime
	codecMicroTime
	codecDuration
	codecQuantity
	codecIntOrString
	codecRaw // runtime.RawExtension and the JSON of apiextensions
)

var codecOf = map[string]ownCodec{
	"Time": codecTime, "MicroTime": codecMicroTime, "Duration": codecDuration,
	"Quantity": codecQuantity, "IntOrString": codecIntOrString,
}

// without copies the node of a struct and leaves some paths out.
func (n *node) without(paths []string) *node {
	out := *n
	out.fields = nil
	for _, f := range n.fields {
		name := strings.TrimPrefix(f.element, "f:")
		var below []string
		whole := false
		for _, p := range paths {
			first, rest, nested := strings.Cut(p, ".")
			if first == name && !nested {
				whole = true
			} else if first == name {
				below = append(below, rest)
			}
		}
		if whole {
			continue
		}
		if len(below) > 0 && f.form == formStruct {
			f.node = f.without(below)
		}
		out.fields = append(out.fields, f)
	}
	return &out
}

func (p *Plans) compile(s *schema.Shape) *node {
	if n := p.nodes[s]; n != nil {
		return n
	}
	n := &node{}
	p.nodes[s] = n // before its children, for types contain themselves
	switch s.Form {
	case schema.Scalar:
		n.form = formScalar
		if s.Self {
			n.codec = codecOf[s.Type.Name()]
		}
	case schema.Any:
		n.form, n.inner, n.codec = formUnsupported, formUnsupported, codecRaw
	case schema.Struct:
		n.form, n.inner = formStruct, formStruct
		for _, f := range s.Fields {
			n.fields = append(n.fields, nodeField{"f:" + f.Name, f.Index, f.OmitEmpty, f.OmitZero, p.compile(f.Shape)})
		}
	case schema.Map:
		n.form, n.inner = formMap, formMap
		n.elem = p.compile(s.Elem)
		n.plain = s.Type.Key().Kind() == reflect.String && s.Type.Elem().Kind() == reflect.String
	case schema.List:
		p.compileList(n, s)
	}
	if s.Atomic {
		n.form = formAtomic
	}
	return n
}

func (p *Plans) compileList(n *node, s *schema.Shape) {
	n.elem = p.compile(s.Elem)
	n.form, n.inner = formSet, formList
	switch {
	case len(s.Keys) > 0:
		n.form = formKeyed
		n.keys = compileKeys(s)
	case s.Elem.Form != schema.Scalar:
		n.form = formUnsupported
	}
}

func compileKeys(s *schema.Shape) []nodeKey {
	var out []nodeKey
	for i, name := range s.Keys {
		f := s.Elem.Find(name)
		if f == nil {
			return nil
		}
		comma := ""
		if i > 0 {
			comma = ","
		}
		k := nodeKey{prefix: comma + `\"` + name + `\":`, index: f.Index, omitEmpty: f.OmitEmpty}
		switch d := f.Default.(type) {
		case string:
			k.fallback = `\"` + d + `\"`
		case float64:
			k.fallback = fmt.Sprint(d)
		}
		out = append(out, k)
	}
	return out
}
