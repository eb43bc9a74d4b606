package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
)

// changeDocument applies a JSON Patch or a merge patch to the JSON of the whole object.
func (p *Patch) changeDocument(ctx context.Context, kind schema.GroupVersionKind, current runtime.Object, encoded []byte) (runtime.Object, []string, error) {
	if encoded == nil {
		current.GetObjectKind().SetGroupVersionKind(kind)
		var err error
		if encoded, err = p.JSON.Encode(nil, current); err != nil {
			return nil, nil, fmt.Errorf("encoding the object to patch: %w", err)
		}
	}
	var out []byte
	var problems []string
	var err error
	switch p.Type {
	case codecs.PatchJSON:
		out, problems, err = p.operations(ctx, encoded)
	case codecs.PatchMerge:
		out, problems, err = p.mergeDocument(ctx, encoded)
	default:
		err = fmt.Errorf("unknown patch type %q", p.Type)
	}
	if err != nil {
		return nil, nil, err
	}
	patched := newLike(current)
	if _, err := codecs.Weigh(p.JSON, out, patched); err != nil {
		return nil, nil, err
	}
	found, err := p.decode(kind, out, patched)
	if err != nil {
		return nil, nil, invalidPatch(string(out), err.Error())
	}
	return p.reportProblems(patched, append(problems, found...), func() string { return string(out) })
}

// decode reads a patched document. The patch may have touched its kind.
func (p *Patch) decode(kind schema.GroupVersionKind, document []byte, into runtime.Object) ([]string, error) {
	got, err := p.JSON.Kind(document)
	if err != nil {
		return nil, err
	}
	if _, custom := into.(*unstructured.Unstructured); custom {
		return p.JSON.Decode(document, into, p.Strictness)
	}
	got.Kind = cmp.Or(got.Kind, kind.Kind)
	if got.Kind == kind.Kind && got.GroupVersion().Empty() {
		// Without a version nothing in the document has a meaning.
		return p.undecodable(document)
	}
	if got != kind {
		if _, err := (codecs.Expected{GVK: kind, Known: p.Known}).Misfit(p.JSON, got, document, codecs.Ignore); err != nil {
			return nil, err
		}
	}
	problems, err := p.JSON.Decode(document, into, p.Strictness)
	into.GetObjectKind().SetGroupVersionKind(kind)
	return problems, err
}

// undecodable reports every field of a document that has no version.
func (p *Patch) undecodable(document []byte) ([]string, error) {
	if p.Strictness == codecs.Ignore {
		return nil, nil
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(document, &tree); err != nil {
		return nil, err
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if name != "kind" && name != "apiVersion" {
			problems = append(problems, fmt.Sprintf("unknown field %q", name))
		}
	}
	return problems, nil
}
