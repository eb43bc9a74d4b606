package definitions

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	agent = "kube-apiserver" // field manager of this package's writes
	// Storage is the storage of CustomResourceDefinitions.
	Storage         = "customresourcedefinitions.apiextensions.k8s.io"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

// writer writes definitions.
type writer struct{ reconcile.Base }

// status stores the status of crd, a changed copy of one, if it differs.
func (d *writer) status(ctx context.Context, one *definition, crd *apiextensionsv1.CustomResourceDefinition) error {
	if equality.Semantic.DeepEqual(one.crd.Status, crd.Status) {
		return nil
	}
	change, err := statusChange(&one.crd.Status, &crd.Status)
	if err != nil {
		return err
	}
	// The patch contains only the differences, which leaves the schemas as they are, and only metadata is
	// read back: schemas are large.
	written := &metav1.PartialObjectMetadata{}
	err = d.API.Call(ctx, agent, http.MethodPatch, definitionsPath+crd.Name+"/status", reconcile.MergePatch, map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.ResourceVersion},
		"status":   change,
	}, written)
	if err == nil {
		crd.ObjectMeta = written.ObjectMeta
		one.crd = crd // for the other definitions of its group, before the watch delivers it
	}
	return reconcile.Current(err) // the watch delivers the newer object
}

// statusChange returns the merge patch between two states of a status.
func statusChange(was, now *apiextensionsv1.CustomResourceDefinitionStatus) (map[string]any, error) {
	var trees [2]map[string]any
	for i, status := range []*apiextensionsv1.CustomResourceDefinitionStatus{was, now} {
		text, err := json.Marshal(status)
		if err == nil {
			err = json.Unmarshal(text, &trees[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return mergeBetween(trees[0], trees[1]), nil
}

// mergeBetween returns the merge patch that changes one tree into another.
func mergeBetween(was, now map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range was {
		if _, still := now[name]; !still {
			patch[name] = nil
		}
	}
	for name, value := range now {
		before, had := was[name]
		inner, tree := value.(map[string]any)
		if wasTree, both := before.(map[string]any); tree && both {
			value = mergeBetween(wasTree, inner)
		}
		if !had || !reflect.DeepEqual(before, now[name]) {
			patch[name] = value
		}
	}
	return patch
}
