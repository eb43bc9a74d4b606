package expr

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/rowlock/rowlock/codecs/budget"
)

// MaxTree bounds the JSON of a mutation's value, in bytes, whatever the limit of objects. A short expression
// can make a much larger value, because it can use a list repeatedly.
const MaxTree = budget.DefaultBody

// maxOperations limits the operations of a JSON patch.
const maxOperations = 10_000

// Operation is an operation of a JSON patch. Value is decoded JSON.
type Operation struct {
	Op, Path, From string
	Value          any
	HasValue       bool
}

// Tree returns the object that a Configuration made, as JSON decodes it.
func Tree(ctx context.Context, v ref.Val) (map[string]any, error) {
	m, ok := v.(*made)
	if !ok || m.typ.TypeName() != objectName {
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %v", v.Type())
	}
	t := treeMaker{ctx: ctx, left: MaxTree}
	tree, err := t.made(m, objectName)
	if err != nil {
		return nil, err
	}
	return tree, t.mistyped()
}

// Operations returns the operations of a Patch's list.
func Operations(ctx context.Context, v ref.Val) ([]Operation, error) {
	list, ok := v.(traits.Lister)
	if !ok {
		return nil, errors.New("type mismatch: JSONPatchType.expression should evaluate to array")
	}
	if n, _ := list.Size().(types.Int); n > maxOperations {
		return nil, fmt.Errorf("the allowed maximum operations in a JSON patch is %d, got %d", maxOperations, n)
	}
	t := treeMaker{ctx: ctx, left: MaxTree}
	var out []Operation
	for it := list.Iterator(); it.HasNext() == types.True; {
		item := it.Next()
		m, ok := item.(*made)
		if !ok || m.typ.TypeName() != patchName {
			return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of %v", item.Type())
		}
		op := Operation{Op: m.text("op"), Path: m.text("path"), From: m.text("from")}
		if err := t.spend(len(op.Op) + len(op.Path) + len(op.From) + 1); err != nil {
			return nil, err
		}
		if value := m.fields["value"]; value != nil {
			// The type of a nested object must be named by its path.
			root, _ := value.(*made)
			path := ""
			if root != nil {
				path = root.typ.TypeName()
			}
			var err error
			if op.Value, err = t.value(value, path); err != nil {
				return nil, fmt.Errorf("JSONPath valueExpression evaluated to a type that could not marshal to JSON: %w", err)
			}
			op.HasValue = true
		}
		out = append(out, op)
	}
	return out, t.mistyped()
}

// treeMaker turns values into trees, within a number of bytes.
type treeMaker struct {
	ctx   context.Context
	left  int
	steps int
	wrong []string // objects that are called by another place than theirs
}

// spend counts the bytes of the next value.
func (t *treeMaker) spend(bytes int) error {
	if t.left -= bytes; t.left < 0 {
		return fmt.Errorf("the expression makes more than %d bytes", MaxTree)
	}
	if t.steps++; t.steps%1024 == 0 {
		return t.ctx.Err()
	}
	return nil
}

// mistyped returns the error that objects with wrong names make.
func (t *treeMaker) mistyped() error {
	if len(t.wrong) == 0 {
		return nil
	}
	return errors.New("type mismatch: " + strings.Join(t.wrong, "\n"))
}

// maxMistyped limits the wrong names in an error.
const maxMistyped = 10

// made returns an object at a place where its type name must be path; "" is any.
func (t *treeMaker) made(m *made, path string) (map[string]any, error) {
	if have := m.typ.TypeName(); path != "" && have != path && len(t.wrong) < maxMistyped {
		t.wrong = append(t.wrong, fmt.Sprintf("unexpected type name %q, expected %q, which matches field name path from root Object type", have, path))
	}
	if m.typ.TypeName() == patchName {
		return nil, errors.New("unable to convert JSONPatch")
	}
	out := make(map[string]any, len(m.fields))
	for _, name := range slices.Sorted(maps.Keys(m.fields)) {
		if err := t.spend(len(name) + 4); err != nil {
			return nil, err
		}
		below := ""
		if path != "" {
			below = path + "." + name
		}
		v, err := t.value(m.fields[name], below)
		if err != nil {
			return nil, fmt.Errorf("fail to convert field %q: %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}

// value returns any value as JSON has it.
func (t *treeMaker) value(v ref.Val, path string) (any, error) {
	if err := t.spend(2); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *made:
		return t.made(v, path)
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d is too large", uint64(v))
		}
		return int64(v), nil
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%v is no number of JSON", f)
		}
		return float64(v), nil
	case types.String:
		return string(v), t.spend(len(v))
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), t.spend(len(v) * 4 / 3)
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		text, _ := v.ConvertToType(types.StringType).Value().(string)
		return text, nil
	case traits.Lister:
		return t.list(v, path)
	case traits.Mapper:
		return t.mapping(v, path)
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("unable to convert %v", v.Type().TypeName())
}

func (t *treeMaker) list(l traits.Lister, path string) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		v, err := t.value(it.Next(), path)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (t *treeMaker) mapping(m traits.Mapper, path string) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("map key %q is of type %T, not string", key, key)
		}
		if err := t.spend(len(name) + 4); err != nil {
			return nil, err
		}
		v, err := t.value(m.Get(key), path)
		if err != nil {
			return nil, err
		}
		out[string(name)] = v
	}
	return out, nil
}
