package json

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Peek guesses kind and API version without looking into other values.
func (Codec) Peek(data []byte) (gvk schema.GroupVersionKind, sure bool) {
	var apiVersion, kind []byte
	var seen int
	ok := EachField(data, func(name, value []byte) bool {
		switch string(name) {
		case "apiVersion":
			apiVersion, sure = plainString(value)
		case "kind":
			kind, sure = plainString(value)
		default:
			return !foldsToKind(name)
		}
		seen++
		return sure
	})
	if !ok || seen > 2 {
		return gvk, false
	}
	gv, err := schema.ParseGroupVersion(string(apiVersion))
	if err != nil {
		return gvk, false
	}
	return gv.WithKind(string(kind)), true
}

// foldsToKind reports names that encoding/json may take for kind or apiVersion,
// and any name that needs unescaping before one can tell.
func foldsToKind(name []byte) bool {
	for _, c := range name {
		if c == '\\' || c >= 0x80 {
			return true
		}
	}
	return len(name) == len("kind") && foldEqual(name, "kind") ||
		len(name) == len("apiVersion") && foldEqual(name, "apiversion")
}

func foldEqual(b []byte, lower string) bool {
	for i := range b {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// plainString returns the content of a string literal without escapes.
func plainString(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	content := value[1 : len(value)-1]
	for _, c := range content {
		if c == '\\' || c < ' ' || c >= 0x80 {
			return nil, false
		}
	}
	return content, true
}
