package fieldset

import (
	"bytes"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sharesMemory finds values that are equal because they are the same memory.
func sharesMemory(a, b reflect.Value) bool {
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

// equal reports whether two values that are there have the same JSON.
func (c *comparer) equal(n *node, a, b reflect.Value) bool {
	if n.codec != codecNone {
		return c.equalOwnCodec(n, a, b)
	}
	inner := n.form
	if inner != formScalar {
		inner = n.inner
	}
	switch inner {
	case formScalar:
		return equalScalars(a, b)
	case formStruct:
		return c.equalFields(n, a, b)
	case formList:
		return c.equalLists(n, a, b)
	case formMap:
		return c.equalMaps(n, a, b)
	}
	c.err = ErrUnsupported
	return true
}

// equalValues is equal for values that may be absent or null.
func (c *comparer) equalValues(n *node, a, b value) bool {
	return a.presence == b.presence &&
		(a.presence != present || sharesMemory(a.Value, b.Value) || c.equal(n, a.Value, b.Value))
}

func (c *comparer) equalFields(n *node, a, b reflect.Value) bool {
	va, vb := value{a, present}, value{b, present}
	for i := range n.fields {
		f := &n.fields[i]
		if !c.equalValues(f.node, va.field(f), vb.field(f)) {
			return false
		}
	}
	return true
}

func (c *comparer) equalLists(n *node, a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	va, vb := value{a, present}, value{b, present}
	for i := range a.Len() {
		if !c.equalValues(n.elem, va.item(n, i), vb.item(n, i)) {
			return false
		}
	}
	return true
}

func (c *comparer) equalMaps(n *node, a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	vb := value{b, present}
	for it := a.MapRange(); it.Next(); {
		if !c.equalValues(n.elem, valueOf(n.elem, it.Value(), false), vb.entry(n, it.Key())) {
			return false
		}
	}
	return true
}

func equalScalars(a, b reflect.Value) bool {
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

// equalOwnCodec is equal for types that encode themselves.
func (c *comparer) equalOwnCodec(n *node, a, b reflect.Value) bool {
	switch n.codec {
	case codecTime:
		return pointerTo[metav1.Time](a).Unix() == pointerTo[metav1.Time](b).Unix()
	case codecMicroTime:
		return pointerTo[metav1.MicroTime](a).UnixMicro() == pointerTo[metav1.MicroTime](b).UnixMicro()
	case codecDuration:
		return *pointerTo[metav1.Duration](a) == *pointerTo[metav1.Duration](b)
	case codecQuantity:
		return equalQuantities(*pointerTo[resource.Quantity](a), *pointerTo[resource.Quantity](b))
	case codecIntOrString:
		x, y := pointerTo[intstr.IntOrString](a), pointerTo[intstr.IntOrString](b)
		if x.Type != y.Type {
			return false
		}
		if x.Type == intstr.Int {
			return x.IntVal == y.IntVal
		}
		return x.StrVal == y.StrVal
	case codecRaw:
		x, okx := rawBytes(a)
		y, oky := rawBytes(b)
		if okx && oky && bytes.Equal(x, y) || reflect.DeepEqual(a.Interface(), b.Interface()) {
			return true
		}
	}
	c.err = ErrUnsupported
	return true
}

// equalQuantities compares the encoded text, not the amounts. It works on copies, for
// Quantity remembers its text.
func equalQuantities(a, b resource.Quantity) bool {
	return a == b || a.String() == b.String()
}
