package cbor

import (
	"reflect"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// apimachinery writes its cache of a Go type while others read it when the type is first used, and types that
// contain each other can make two first uses wait for each other (kubernetes issue 129169, fixed in v0.33).
// So the first use of a type is exclusive.
var (
	settled  sync.Map // reflect.Type -> nothing
	settling sync.Mutex
)

// within are types that the methods of API types encode and decode.
var within = sync.OnceFunc(func() {
	for _, v := range []any{
		"", false, int32(0), int64(0), float64(0), []string(nil), []any(nil), map[string]any(nil),
		apiextensionsv1.JSONSchemaProps{}, []apiextensionsv1.JSONSchemaProps(nil),
	} {
		t := reflect.TypeOf(v)
		for range 3 { // values, where they are decoded to, and where pointers to them are
			settleType(t)
			t = reflect.PointerTo(t)
		}
	}
	settleType(reflect.TypeFor[*any]())
})

func marshal(v any) ([]byte, error) {
	settle(v)
	return direct.Marshal(v)
}

func unmarshal(data []byte, v any) error {
	settle(v)
	return direct.Unmarshal(data, v)
}

// settle must be called before each use of apimachinery's encoder and decoder.
func settle(v any) {
	if t := reflect.TypeOf(v); t != nil {
		if _, ok := settled.Load(t); !ok {
			within()
			settleType(t)
		}
	}
}

func settleType(t reflect.Type) {
	settling.Lock()
	defer settling.Unlock()
	if _, ok := settled.Load(t); ok {
		return
	}
	_, _ = direct.Marshal(reflect.Zero(t).Interface()) // types that cannot be encoded are refused once more in use
	settled.Store(t, nil)
}
