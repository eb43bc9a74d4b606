package apply

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema"
)

// node is how values of one type are compared: a schema.Shape made ready for that.
// Nodes are immutable and may be recursive.
type node struct {
	form   form
	typ    reflect.Type
	fields []nodeField // of formStruct
	elem   *node       // of formMap, formSet, formKeyed, and of atomic lists and maps
	keys   []nodeKey   // of formKeyed
	self   selfKind
	plain  bool // a map from string kinds to string kinds

	// inner is the form inside an atomic value.
	inner form
}

type form uint8

const (
	formScalar form = iota
	formAtomic      // a struct, map or list with one owner; see inner
	formStruct
	formMap
	formSet   // a list of scalars
	formKeyed // a list of structs
	formList  // an atomic list, as an inner form
	formOther // only the merge library can handle it
)

type nodeField struct {
	element   string // path element "f:name", escaped for JSON
	index     []int
	omitEmpty bool
	*node
}

// nodeKey is one key field of the items of a keyed list.
type nodeKey struct {
	prefix   string // `\"name\":`, as it stands in an escaped path element
	index    []int
	fallback string // the encoded default; "" for none
	omit     bool
}

// selfKind names the types that encode themselves.
type selfKind uint8

const (
	selfNone selfKind = iota
	selfTime
	selfMicroTime
	selfDuration
	selfQuantity
	selfIntOrString
	selfRaw // runtime.RawExtension and apiextensions JSON
)

var selfKinds = map[string]selfKind{
	"Time": selfTime, "MicroTime": selfMicroTime, "Duration": selfDuration,
	"Quantity": selfQuantity, "IntOrString": selfIntOrString,
}

// untracked are the metadata fields that nobody owns.
var untracked = []string{
	"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.creationTimestamp", "metadata.selfLink",
	"metadata.uid", "metadata.clusterName", "metadata.generation", "metadata.managedFields", "metadata.resourceVersion",
}

// plans compiles nodes on first use and keeps them, by type and what is left out.
type plans struct {
	known sync.Map // planKey -> *node
	mu    sync.Mutex
	nodes map[*schema.Shape]*node
}

type planKey struct {
	typ   reflect.Type
	reset string
}

// of returns the plan of an endpoint. The node of a type that only the merge
// library can handle is of formOther.
func (p *plans) of(schemas *schema.Schemas, r *kinds.Resource, t reflect.Type, reset []string) (*node, error) {
	key := planKey{t, ""}
	switch len(reset) {
	case 0:
	case 1:
		key.reset = reset[0]
	default:
		key.reset = strings.Join(reset, " ")
	}
	if n, ok := p.known.Load(key); ok {
		return n.(*node), nil
	}
	shape, err := schemas.Of(t)
	if err != nil {
		return nil, fmt.Errorf("planning field ownership of %v: %w", r.GVK(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes == nil {
		p.nodes = make(map[*schema.Shape]*node)
	}
	n := p.compile(shape).without(slices.Concat(untracked, reset))
	p.known.Store(key, n)
	return n, nil
}

// without copies a struct node with some paths left out.
func (n *node) without(paths []string) *node {
	out := *n
	out.fields = nil
	for _, f := range n.fields {
		name := strings.TrimPrefix(f.element, "f:")
		var below []string
		drop := false
		for _, p := range paths {
			first, rest, nested := strings.Cut(p, ".")
			if first == name && !nested {
				drop = true
			} else if first == name {
				below = append(below, rest)
			}
		}
		if drop {
			continue
		}
		if len(below) > 0 && f.form == formStruct {
			f.node = f.without(below)
		}
		out.fields = append(out.fields, f)
	}
	return &out
}

func (p *plans) compile(s *schema.Shape) *node {
	if n := p.nodes[s]; n != nil {
		return n
	}
	n := &node{typ: s.Type}
	p.nodes[s] = n
	switch s.Form {
	case schema.Scalar:
		n.form = formScalar
		if s.Self {
			n.self = selfKinds[s.Type.Name()]
		}
	case schema.Any:
		n.form, n.self = formOther, selfRaw
		if s.Atomic {
			n.form = formAtomic
		}
		n.inner = formOther
	case schema.Struct:
		n.form, n.inner = formStruct, formStruct
		for _, f := range s.Fields {
			n.fields = append(n.fields, nodeField{"f:" + f.Name, f.Index, f.OmitEmpty, p.compile(f.Shape)})
		}
	case schema.Map:
		n.form, n.inner = formMap, formMap
		n.elem = p.compile(s.Elem)
		n.plain = s.Type.Key().Kind() == reflect.String && s.Type.Elem().Kind() == reflect.String
	case schema.List:
		n.elem = p.compile(s.Elem)
		n.form, n.inner = formSet, formList
		if len(s.Keys) > 0 {
			n.form = formKeyed
			n.keys = compileKeys(s)
		}
		if n.form == formSet && !s.Atomic && s.Elem.Form != schema.Scalar {
			n.form = formOther
		}
	}
	if s.Atomic {
		n.form = formAtomic
	}
	return n
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
		k := nodeKey{prefix: comma + `\"` + name + `\":`, index: f.Index, omit: f.OmitEmpty}
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

func at(v reflect.Value, index []int) reflect.Value {
	if len(index) == 1 {
		return v.Field(index[0])
	}
	return v.FieldByIndex(index)
}
