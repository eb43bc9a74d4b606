package apply

import (
	"context"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
)

// settler is a codec of objects without Go type that changes them after it has decoded them.
type settler interface {
	// Settle changes obj as Decode would. It returns false if Decode would report a problem or an error, or would add or remove
	// fields outside of metadata; then it has not done so.
	Settle(obj runtime.Object) bool
}

// mergeTree applies a merge patch to the tree of an object without Go type; encoded is its JSON. The result is that of
// changeDocument, but decodes only the patch. It shares with current all values that the patch does not change, except
// metadata. It returns false for a patch that changeDocument may refuse, or that changes the kind.
func (p *Patch) mergeTree(ctx context.Context, current runtime.Object, encoded []byte) (runtime.Object, bool) {
	live, isTree := current.(*unstructured.Unstructured)
	codec, settles := p.JSON.(settler)
	if !isTree || !settles || p.Type != codecs.PatchMerge || encoded == nil {
		return nil, false
	}
	patch := &unstructured.Unstructured{}
	if !p.Types.DecodeClean(p.Body, patch) || statesKind(patch.Object) {
		return nil, false
	}
	tree := maps.Clone(live.Object)
	if meta, ok := tree["metadata"]; ok {
		tree["metadata"] = runtime.DeepCopyJSONValue(meta)
	}
	m := treeMerger{Budget: budget.New(ctx, "the merge patch")}
	merged, err := m.merge(tree, patch.Object)
	if err != nil || !p.fits(encoded, m.removed, live) {
		return nil, false
	}
	out := &unstructured.Unstructured{Object: merged.(map[string]any)}
	return out, codec.Settle(out)
}

// fits reports whether the merged object may be decoded. It has at most the values of the live object and of the patch, and at
// least the bytes of the live object without the removed ones. Far from the limit it only estimates the number of values.
func (p *Patch) fits(encoded []byte, removed int, live runtime.Object) bool {
	t := reflect.TypeOf(live)
	most := int(budget.MemoryOf(len(encoded)-removed) / budget.Weight(1, t))
	changes := budget.JSON(p.Body, most)
	return changes+budget.JSON(encoded, most-changes) <= most
}

// statesKind reports whether a patch has members that a decoder may read as kind or version, in any case of letters.
func statesKind(patch map[string]any) bool {
	for name := range patch {
		if strings.EqualFold(name, "kind") || strings.EqualFold(name, "apiVersion") {
			return true
		}
	}
	return false
}

// treeMerger is jsonpatch.Merge for trees. It copies the maps that it changes.
type treeMerger struct {
	*budget.Budget
	removed int // bytes that the JSON of removed values has at most
}

func (m *treeMerger) merge(live, patch any) (any, error) {
	from, ok := live.(map[string]any)
	if !ok {
		m.remove(live)
		return patch, m.prune(patch)
	}
	changes, ok := patch.(map[string]any)
	if !ok {
		m.remove(live)
		return patch, nil
	}
	if err := m.Spend(1 + len(from) + len(changes)); err != nil {
		return nil, err
	}
	out := maps.Clone(from)
	for name, change := range changes {
		var err error
		switch old := from[name]; {
		case change == nil:
			if _, ok := from[name]; ok {
				m.remove(map[string]any{name: old})
				delete(out, name)
			}
		case old == nil:
			out[name], err = change, m.prune(change)
		default:
			out[name], err = m.merge(old, change)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// prune removes the members that are null from a part of the patch that is merged with nothing.
func (m *treeMerger) prune(v any) error {
	if err := m.Spend(1); err != nil {
		return err
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == nil {
				delete(v, name)
			} else if err := m.prune(value); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range v {
			if value == nil {
				continue
			}
			if err := m.prune(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove counts the bytes of a removed value.
func (m *treeMerger) remove(v any) {
	const (
		escape = 6  // bytes of the longest escape of a byte
		other  = 32 // bytes of the longest number, brackets, quotes and separators
	)
	m.removed += other
	switch v := v.(type) {
	case string:
		m.removed += escape * len(v)
	case map[string]any:
		for name, value := range v {
			m.removed += escape * len(name)
			m.remove(value)
		}
	case []any:
		for _, value := range v {
			m.remove(value)
		}
	}
}
