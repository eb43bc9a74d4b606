package history

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/verbs"
)

// Limits of a Difference: changes, bytes of one value, and bytes of all values.
const (
	maxChanges  = 1000
	valueBytes  = 64 << 10
	valuesBytes = 1 << 20
)

// diff returns the changes between two states: that of the parameter from, by default of the write before,
// and that of the revision.
func (t *handlers) diff(h *verbs.Handler, c *verbs.Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	name, err := history.ParseName(c.Info.Name)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var since *history.State
	if text := c.Info.Query.Get("from"); text != "" {
		s, err := history.ParseState(text)
		if err != nil {
			return apierrors.NewBadRequest("from: " + err.Error())
		}
		since = &s
	}
	o, err := t.open(h, c, name.Resource, name.Name)
	if err != nil {
		return err
	}
	ctx := c.R.Context()
	writes := pair
	if since != nil {
		writes = alone
	}
	to, err := o.at(ctx, name.State, writes)
	if err != nil {
		return err
	}
	if to.write == nil {
		return apierrors.NewNotFound(c.Resource.GroupResource(), c.Info.Name)
	}
	from, err := o.compared(ctx, to, since)
	if err != nil {
		return err
	}
	d, err := o.difference(ctx, from, to)
	if err != nil {
		return err
	}
	d.SetGroupVersionKind(history.GroupVersion.WithKind(c.Sub.Kind))
	return h.Answers.Object(&c.Request, form, http.StatusOK, d)
}

// compared returns the state to compare with.
func (o *object) compared(ctx context.Context, to *state, since *history.State) (*state, error) {
	switch {
	case since != nil:
		return o.at(ctx, *since, alone)
	case to.before != nil:
		return &state{revision: to.before.Item.Revision, write: to.before}, nil
	case to.write.Created():
		return &state{revision: to.write.Item.Revision - 1}, nil
	case o.closed:
		return nil, o.earlier()
	}
	return nil, o.expired(o.h.Objects.PastFloor(o.place.Resource))
}

// difference returns the changes between two states.
func (o *object) difference(ctx context.Context, from, to *state) (*history.Difference, error) {
	d := &history.Difference{From: number(from.revision), To: number(to.write.Item.Revision), Changes: []history.Change{}}
	d.Object = o.bare(to.write).Object
	d.Name, d.Namespace = o.bare(to.write).Name, o.place.Namespace
	d.ToWrittenAt = &metav1.MicroTime{Time: to.write.WrittenAt}
	if from.write != nil {
		d.From, d.FromWrittenAt = number(from.write.Item.Revision), &metav1.MicroTime{Time: from.write.WrittenAt}
	}
	leave, err := o.room(ctx, from.write, to.write)
	if err != nil {
		return nil, err
	}
	defer leave()
	before, err := o.objectAt(ctx, from)
	if err != nil {
		return nil, err
	}
	after, err := o.objectAt(ctx, to)
	if err != nil {
		return nil, err
	}
	switch {
	case before == nil && after == nil:
		return d, nil
	case before == nil:
		d.Changes = append(d.Changes, history.Change{Op: history.Add})
		return d, nil
	case after == nil:
		d.Changes = append(d.Changes, history.Change{Op: history.Remove})
		return d, nil
	}
	fields, more, err := history.Compare(ctx, o.schema(after), before, after, maxChanges)
	d.Truncated = more
	if err == nil {
		err = o.values(d, fields, before, after)
	}
	return d, err
}

// objectAt returns the object in a state, nil if there was none.
func (o *object) objectAt(ctx context.Context, s *state) (map[string]any, error) {
	if !s.there() {
		return nil, nil
	}
	return o.tree(ctx, s.write)
}

// values adds old and new values of fields, within the limits, and the managers.
func (o *object) values(d *history.Difference, fields []history.Field, before, after map[string]any) error {
	entries := history.Entries(after)
	owners := history.NewOwners(entries)
	sole := soleManager(history.Wrote(history.Entries(before), entries, fields))
	codec, room := o.h.Objects.Codec(), valuesBytes
	for i := range fields {
		f := &fields[i]
		change := history.Change{Path: f.Text(), Op: f.Op, From: f.From, To: f.To, Manager: sole}
		if f.Op != history.Remove {
			if owner := owners.Of(f.Path); owner != "" {
				change.Manager = owner
			}
		}
		text, err := codec.Append(nil, &change)
		if err != nil {
			return err
		}
		if len(text) > valueBytes {
			change.From, change.To, change.Omitted = nil, nil, true
			text = nil
		}
		if room -= len(text); room < 0 {
			d.Truncated = true
			return nil
		}
		d.Changes = append(d.Changes, change)
	}
	return nil
}

// soleManager returns the only manager that wrote, "" if there are several or it is unknown.
func soleManager(list []history.Manager) string {
	name := ""
	for _, m := range list {
		if name != "" && m.Manager != name {
			return ""
		}
		name = m.Manager
	}
	return name
}
