package clusterinfo

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// managersOf returns the field managers that own a field, each once and in order. The path has the names of
// the field's parts as managedFields has them: "f:data", "f:kubeconfig".
func managersOf(entries []metav1.ManagedFieldsEntry, path ...string) []string {
	var out []string
	for _, e := range entries {
		if e.FieldsV1 != nil && holds(e.FieldsV1.Raw, path) {
			out = append(out, e.Manager)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func holds(fields []byte, path []string) bool {
	if len(path) == 0 {
		return true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(fields, &members) != nil {
		return false
	}
	inner, ok := members[path[0]]
	return ok && holds(inner, path[1:])
}
