package apply

import (
	"bytes"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// identical finds values that share their memory.
func identical(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice:
		return a.Len() == b.Len() && a.UnsafePointer() == b.UnsafePointer()
	case reflect.Map:
		return a.UnsafePointer() == b.UnsafePointer()
	case reflect.Struct:
		return a.CanAddr() && b.CanAddr() && unsafe.Pointer(a.UnsafeAddr()) == unsafe.Pointer(b.UnsafeAddr())
	}
	return false
}

// same tells whether two present values have the same JSON.
func (c *comparer) same(n *node, a, b reflect.Value) bool {
	if n.self != selfNone {
		return c.sameSelf(n, a, b)
	}
	inner := n.form
	if inner != formScalar {
		inner = n.inner
	}
	switch inner {
	case formScalar:
		return sameScalar(a, b)
	case formStruct:
		for i := range n.fields {
			f := &n.fields[i]
			fa, qa := resolve(f.node, at(a, f.index), f.omitEmpty)
			fb, qb := resolve(f.node, at(b, f.index), f.omitEmpty)
			if qa != qb || qa == present && !identical(fa, fb) && !c.same(f.node, fa, fb) {
				return false
			}
		}
		return true
	case formList:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			va, qa := resolve(n.elem, a.Index(i), false)
			vb, qb := resolve(n.elem, b.Index(i), false)
			if qa != qb || qa == present && !c.same(n.elem, va, vb) {
				return false
			}
		}
		return true
	case formMap:
		return c.sameMap(n, a, b)
	}
	c.err = errOther
	return true
}

func (c *comparer) sameMap(n *node, a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for it := a.MapRange(); it.Next(); {
		va, qa := resolve(n.elem, it.Value(), false)
		vb, qb := lookup(n, b, present, it.Key())
		if qa != qb || qa == present && !c.same(n.elem, va, vb) {
			return false
		}
	}
	return true
}

func sameScalar(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return a.Uint() == b.Uint()
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float()
	case reflect.Slice:
		return bytes.Equal(a.Bytes(), b.Bytes())
	}
	return false
}

func (c *comparer) sameSelf(n *node, a, b reflect.Value) bool {
	switch n.self {
	case selfTime:
		return addressed[metav1.Time](a).Unix() == addressed[metav1.Time](b).Unix()
	case selfMicroTime:
		return addressed[metav1.MicroTime](a).UnixMicro() == addressed[metav1.MicroTime](b).UnixMicro()
	case selfDuration:
		return *addressed[metav1.Duration](a) == *addressed[metav1.Duration](b)
	case selfQuantity:
		return sameQuantity(*addressed[resource.Quantity](a), *addressed[resource.Quantity](b))
	case selfIntOrString:
		x, y := addressed[intstr.IntOrString](a), addressed[intstr.IntOrString](b)
		if x.Type != y.Type {
			return false
		}
		if x.Type == intstr.Int {
			return x.IntVal == y.IntVal
		}
		return x.StrVal == y.StrVal
	case selfRaw:
		x, okx := rawBytes(a)
		y, oky := rawBytes(b)
		if okx && oky && bytes.Equal(x, y) || reflect.DeepEqual(a.Interface(), b.Interface()) {
			return true
		}
	}
	c.err = errOther
	return true
}

// sameQuantity compares what is encoded, not the amounts. It works on copies, for
// Quantity remembers its text.
func sameQuantity(a, b resource.Quantity) bool {
	return a == b || a.String() == b.String()
}
