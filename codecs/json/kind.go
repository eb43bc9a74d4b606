package json

import (
	"bytes"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// scanKind reads kind and apiVersion without decoding the rest, which it validates. ok is false for text with errors, and for
// text that encoding/json may read differently: unusual names, or one of the two repeated, no plain string, or no version.
func scanKind(data []byte) (gvk schema.GroupVersionKind, ok bool) {
	var kind, version []byte
	end := scan.Loose.Members(data, scan.Space(data, 0), func(n scan.Name, at int) (int, bool) {
		if n.Has != 0 {
			return -1, false
		}
		to := &kind
		switch name := n.In(data); {
		case bytes.EqualFold(name, []byte("apiVersion")):
			to = &version
		case !bytes.EqualFold(name, []byte("kind")):
			return scan.Loose.Value(data, at, scan.MaxDepth-1), true
		}
		end, has := scan.String(data, at)
		if has != 0 || end < 0 || *to != nil {
			return -1, false
		}
		*to = data[at+1 : end-1]
		return end, true
	})
	if end < 0 || scan.Space(data, end) != len(data) {
		return gvk, false
	}
	gv, err := schema.ParseGroupVersion(string(version))
	return gv.WithKind(string(kind)), err == nil
}
