package ownership

import (
	"bytes"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/apply/ownership/fieldset"
	"github.com/rowlock/rowlock/server/kinds"
)

// application describes a server-side apply to an existing object.
type application struct {
	resource    *kinds.Resource
	subresource string
	live        kinds.Object // of the resource's version; not changed
	body        []byte       // the applied configuration, as JSON
	codec       jsoncodec.Codec
	manager     string
	now         time.Time
}

// lastApplied is the annotation of client-side apply. The library converts it to managed fields, and keeps it
// up to date, when kubectl applies.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// reapply is for the usual apply of a controller: the manager applies just the fields that it applied before,
// some with other values. Then nothing is removed, and no other manager loses a field unless it has another
// owner; it remains to set values and times. Every other apply is fieldset.ErrUnsupported.
func (p *planned) reapply(a application) (kinds.Object, error) {
	entries := a.live.GetManagedFields()
	own := a.ownEntry(entries)
	if own < 0 || !planEntries(entries, a.resource.APIVersion()) || a.manager == "kubectl" && a.live.GetAnnotations()[lastApplied] != "" {
		return nil, fieldset.ErrUnsupported
	}
	want := a.resource.New()
	if reflect.TypeOf(want) != reflect.TypeOf(a.live) || !a.codec.DecodeClean(a.body, want) || !a.named(want) {
		return nil, fieldset.ErrUnsupported
	}
	plan, err := p.plans.Of(p.schemas, reflect.TypeOf(a.live).Elem(), resetFields(a.resource, a.subresource))
	if err != nil {
		return nil, err
	}
	merged := a.live.DeepCopyObject().(kinds.Object)
	merged.GetObjectKind().SetGroupVersionKind(a.resource.GVK())
	memory := fieldset.NewMemory()
	defer memory.Release()
	named, changes, err := plan.Overlay(memory, a.body, a.live.GetName(), a.live.GetNamespace(), reflect.ValueOf(merged).Elem(), reflect.ValueOf(want).Elem())
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(memory.Text(named), entries[own].FieldsV1.Raw) {
		return nil, fieldset.ErrUnsupported
	}
	if len(changes) == 0 {
		return merged, nil
	}
	if err := unshared(entries, own, changes, memory); err != nil {
		return nil, err
	}
	after := merged.GetManagedFields()
	after[own].Time = timestamp(a.now)
	sortEntries(after)
	return merged, nil
}

// ownEntry returns the index of the manager's entry for its last apply; -1 if there is none.
func (a *application) ownEntry(entries []metav1.ManagedFieldsEntry) int {
	return slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == a.manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == a.subresource
	})
}

// named reports whether the applied configuration has the kind and the version of the request.
func (a *application) named(want kinds.Object) bool {
	version, kind := want.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return kind == a.resource.Kind && version == a.resource.APIVersion()
}

// unshared returns an error if a changed field has another owner as well, which is a conflict.
func unshared(entries []metav1.ManagedFieldsEntry, own int, changes fieldset.Set, memory *fieldset.Memory) error {
	for i := range entries {
		if i == own || !changes.MayMention(entries[i].FieldsV1.Raw) {
			continue
		}
		set, err := fieldset.Parse(entries[i].FieldsV1.Raw, memory)
		if err != nil {
			return err
		}
		if set.Remove(changes) {
			return fieldset.ErrUnsupported
		}
	}
	return nil
}

// For the YAML decoder a name ends, with its colon, at most 1024 bytes after its beginning.
const (
	maxPlainKey = 1000 // bytes of a name, each of which may be written in six
	maxBlanks   = 8    // blanks between it and its colon
)

// quickTree reads the body of an apply where it is JSON that the reader of YAML takes for
// the same: quickText, with short names and numbers that are integers.
func quickTree(codec jsoncodec.Codec, body []byte) (map[string]any, bool) {
	if !quickText(body) {
		return nil, false
	}
	u := &unstructured.Unstructured{}
	if !codec.DecodeClean(body, u) || !plainTree(u.Object) {
		return nil, false
	}
	return u.Object, true
}

// quickText reports whether a body is printable ASCII without escapes of slashes or of characters beyond Latin-1.
func quickText(body []byte) bool {
	if len(body) == 0 || body[0] != '{' || bytes.Contains(body, []byte(`\/`)) || bytes.Count(body, []byte(`\u`)) != bytes.Count(body, []byte(`\u00`)) {
		return false
	}
	broken, blanks := false, 0 // nothing but blanks since the last end of a line; how many blanks there were last
	for _, c := range body {
		if (c < 0x20 || c > 0x7e) && c != '\n' || (broken || blanks > maxBlanks) && c == ':' {
			return false // the YAML decoder expects a name and its colon on one line
		}
		broken = c == '\n' || broken && c == ' '
		if blanks++; c != ' ' {
			blanks = 0
		}
	}
	return true
}

// plainTree reports whether a value has no numbers with fractions and no long names.
func plainTree(v any) bool {
	switch v := v.(type) {
	case float64:
		return false
	case map[string]any:
		for k, item := range v {
			if 6*len(k) > maxPlainKey || !plainTree(item) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !plainTree(item) {
				return false
			}
		}
	}
	return true
}
