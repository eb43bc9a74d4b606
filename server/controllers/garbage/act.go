package garbage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// remove deletes an object, if it has not changed since it was examined.
func (c *state) remove(ctx context.Context, s *subject, how metav1.DeletionPropagation) error {
	uid, revision := types.UID(s.UID), fmt.Sprint(s.item.Revision)
	return c.call(ctx, s, http.MethodDelete, "application/json", &metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &revision}, PropagationPolicy: &how,
	})
}

// release takes references away from an object.
func (c *state) release(ctx context.Context, s *subject, away func(i int) bool) error {
	var kept []json.RawMessage
	for i := range s.refs {
		if !away(i) {
			kept = append(kept, s.refs[i].JSON)
		}
	}
	return c.patch(ctx, s, "ownerReferences", kept)
}

// unblock has an object block no owner's deletion any more.
func (c *state) unblock(ctx context.Context, s *subject) error {
	var list []json.RawMessage
	for i := range s.refs {
		var r map[string]any
		if err := json.Unmarshal(s.refs[i].JSON, &r); err != nil {
			return err
		}
		if s.refs[i].Blocks {
			r["blockOwnerDeletion"] = false
		}
		changed, err := json.Marshal(r)
		if err != nil {
			return err
		}
		list = append(list, changed)
	}
	return c.patch(ctx, s, "ownerReferences", list)
}

// unfinalize takes a finalizer away.
func (c *state) unfinalize(ctx context.Context, s *subject, finalizer string) error {
	var all []string
	if err := json.Unmarshal(s.finalizers, &all); err != nil {
		return err
	}
	var kept []json.RawMessage
	for _, f := range all {
		if f != finalizer {
			text, err := json.Marshal(f)
			if err != nil {
				return err
			}
			kept = append(kept, text)
		}
	}
	return c.patch(ctx, s, "finalizers", kept)
}

// patch replaces a list in an object's metadata, if the object has not changed since it was examined.
func (c *state) patch(ctx context.Context, s *subject, name string, list []json.RawMessage) error {
	return c.call(ctx, s, http.MethodPatch, string(types.MergePatchType), map[string]any{"metadata": map[string]any{
		"uid": s.UID, "resourceVersion": fmt.Sprint(s.item.Revision), name: list,
	}})
}

// call writes an object. The consequences of the write are processed at once.
func (c *state) call(ctx context.Context, s *subject, method, contentType string, body any) error {
	r := c.Catalogue.ByStorage(s.storage)
	if r == nil {
		return errUnknown
	}
	path := bytes.NewBufferString("/apis/" + r.Group + "/" + r.Version)
	if r.Group == "" {
		path = bytes.NewBufferString("/api/" + r.Version)
	}
	if r.Namespaced {
		path.WriteString("/namespaces/" + s.item.Namespace)
	}
	path.WriteString("/" + r.Plural + "/" + url.PathEscape(s.item.Name))
	c.mu.Lock()
	c.graph.MarkUrgent(s.id)
	c.mu.Unlock()
	err := c.API.Call(ctx, agent, method, path.String(), contentType, body, nil)
	if err != nil {
		c.mu.Lock()
		c.graph.ClearUrgent(s.id)
		c.mu.Unlock()
	}
	return err
}
