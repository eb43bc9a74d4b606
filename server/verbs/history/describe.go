package history

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/objects"
)

// maxFields is the maximum number of changed fields for one write.
const maxFields = 50

// lightBytes is the size up to which objects do not pass the gate.
const lightBytes = 32 << 10

// makerAnnotations are annotations of other projects that name the creator of an object.
var makerAnnotations = []string{"openshift.io/requester", "field.cattle.io/creatorId"}

// describe describes a write, given the previous one, with or without the object.
func (o *object) describe(ctx context.Context, w, before *objects.Write, content bool) (*history.Revision, error) {
	data, err := o.h.Objects.JSON(ctx, o.place.Resource, w.Item)
	if err != nil {
		return nil, err
	}
	r := o.bare(w)
	if before != nil && !w.Created() && before.Item.Created() == w.Item.Created() {
		r.Previous = number(before.Item.Revision)
	} else {
		before = nil
	}
	if content {
		r.Content = &runtime.RawExtension{Raw: data}
	}
	return r, o.examine(ctx, r, w, before)
}

// bare describes a write without decoding it.
func (o *object) bare(w *objects.Write) *history.Revision {
	at, res := &o.place, o.place.Resource
	name := history.Name{Resource: res.GroupResource(), Name: at.Name, State: history.State{Revision: w.Item.Revision}}
	r := &history.Revision{
		ObjectMeta: metav1.ObjectMeta{
			Name: name.String(), Namespace: at.Namespace, CreationTimestamp: metav1.NewTime(w.WrittenAt.Truncate(time.Second)), ResourceVersion: number(w.Item.Revision),
		},
		Object: history.Reference{
			Resource: res.Plural, Group: res.Group, Version: res.Version, Kind: res.Kind, Namespace: at.Namespace, Name: at.Name,
		},
		Revision: number(w.Item.Revision), Change: history.Updated, WrittenAt: metav1.NewMicroTime(w.WrittenAt),
	}
	switch {
	case w.Deleted:
		r.Change = history.Deleted
	case w.Created():
		r.Change = history.Created
	}
	if w.Superseded != 0 {
		r.SupersededBy = number(w.Superseded)
	}
	r.SetGroupVersionKind(o.c.Resource.GVK())
	return r
}

// examine adds the information that needs the decoded object.
func (o *object) examine(ctx context.Context, r *history.Revision, w, before *objects.Write) error {
	leave, err := o.room(ctx, w, before)
	if err != nil {
		return err
	}
	defer leave()
	tree, err := o.tree(ctx, w)
	if err != nil {
		return err
	}
	shown := unstructured.Unstructured{Object: tree}
	r.Object.UID = string(shown.GetUID())
	if kind := shown.GroupVersionKind(); r.Object.Kind == "" {
		r.Object.Kind, r.Object.Version = kind.Kind, kind.Version
	}
	notes := shown.GetAnnotations()
	r.User = notes[history.UserAnnotation]
	after := history.Entries(tree)
	if w.Created() {
		for i := 0; r.User == "" && i < len(makerAnnotations); i++ {
			r.User = notes[makerAnnotations[i]]
		}
		r.Managers = history.Wrote(nil, after, nil)
		return nil
	}
	if before == nil {
		return nil
	}
	old, err := o.tree(ctx, before)
	if _, ok := errors.AsType[*objects.Unreadable](err); ok {
		r.Previous = "" // the change is unknown
		return nil
	}
	if err != nil {
		return err
	}
	fields, more, err := history.Compare(ctx, o.schema(tree), old, tree, maxFields)
	if err != nil {
		return err
	}
	r.MoreChangedFields = more
	for i := range fields {
		r.ChangedFields = append(r.ChangedFields, fields[i].Text())
	}
	r.Managers = history.Wrote(history.Entries(old), after, fields)
	return nil
}

// tree returns the written object in the version of the answer.
func (o *object) tree(ctx context.Context, w *objects.Write) (map[string]any, error) {
	data, err := o.h.Objects.JSON(ctx, o.place.Resource, w.Item)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	_, err = o.h.Objects.Codec().Unmarshal(data, &tree, codecs.Ignore)
	return tree, err
}

// room waits at the gate, without a seat, for the decoded objects of writes. Small ones do not wait.
func (o *object) room(ctx context.Context, writes ...*objects.Write) (leave func(), err error) {
	weight := int64(0)
	for _, w := range writes {
		if w == nil || w.Item.Size() < lightBytes {
			continue
		}
		one, err := codecs.Weigh(o.h.Objects.Codec(), w.Item.JSON(), &unstructured.Unstructured{})
		if err != nil {
			one = budget.Memory // stored before there was a limit
		}
		weight += one
	}
	err = o.c.Request.Scope.Waiting(func() error {
		place, err := o.h.Gate.Enter(ctx, o.c.Request.User(), weight)
		leave = place.Leave
		return err
	})
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// schema returns the merge schema of the object.
func (o *object) schema(tree map[string]any) history.Schema {
	if o.merged || o.Merging == nil {
		return o.merge
	}
	o.merged = true
	bare := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tree["apiVersion"], "kind": tree["kind"]}}
	if known, err := o.Merging(bare); err == nil {
		o.merge = known
	}
	return o.merge
}
