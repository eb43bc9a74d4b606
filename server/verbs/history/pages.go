package history

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/verbs"
)

// Limits of a page: revisions, revisions by default, bytes read from the table, and bytes of objects in the
// answer. The last write of a page may exceed them.
const (
	maxRevisions   = 100
	usualRevisions = 50
	readBytes      = 16 << 20
	contentBytes   = 4 << 20
)

// readAtOnce limits the writes that are read before their sizes are known: the largest possible ones take the memory
// of a few request bodies. After large ones, the next one is read alone.
const (
	readAtOnce = 4
	largeBytes = 1 << 20
)

// Labels of the field selector that names the object.
const (
	labelResource = "object.resource"
	labelName     = "object.name"
)

// page is a list in progress.
type page struct {
	*object
	limit        int
	content      bool
	since        time.Time // older revisions are excluded; zero: none are
	until        time.Time // newer revisions are excluded
	before       int64     // starts with the newest write below this
	items        []history.Revision
	read, shown  int   // bytes
	continueFrom int64 // the next page starts below this; 0: there is none
}

// list returns a page of the writes of one object, newest first.
func (t *handlers) list(h *verbs.Handler, c *verbs.Call) error {
	options, invalid := h.ReadList(c)
	form, err := h.Answers.NegotiateList(&c.Request, invalid)
	if err != nil {
		return err
	}
	resource, name, err := selected(c, options)
	if err != nil {
		return err
	}
	of, err := history.ParseResource(resource)
	if err == nil {
		err = history.CheckObject(name)
	}
	if err != nil {
		return apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	o, err := t.open(h, c, of, name)
	if err != nil {
		return err
	}
	p := &page{object: o, limit: usualRevisions, content: flag(c, "content")}
	if options.Limit > 0 {
		p.limit = int(min(options.Limit, maxRevisions))
	}
	if err := p.bounds(c.R.Context(), options.Continue); err != nil {
		return err
	}
	if err := p.fill(c.R.Context()); err != nil {
		return err
	}
	return p.answer(form)
}

// selected returns the object whose writes are listed.
func selected(c *verbs.Call, o *objects.ListOptions) (resource, name string, err error) {
	if c.Resource.Namespaced && c.Info.Namespace == "" {
		return "", "", apierrors.NewBadRequest("revisions are listed of one object, in its namespace: name that")
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return "", "", apierrors.NewBadRequest("resourceVersion: history is read as of now; since and until select times")
	}
	if !o.LabelSelector.Empty() {
		return "", "", apierrors.NewBadRequest("labelSelector: revisions have no labels")
	}
	for _, r := range o.FieldSelector.Requirements() {
		switch {
		case r.Operator == "!=":
			return "", "", apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %s can only be asked for, not left out", r.Field))
		case r.Field == labelResource:
			resource = r.Value
		case r.Field == labelName:
			name = r.Value
		default:
			return "", "", apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector: only %q, %q", r.Field, labelResource, labelName))
		}
	}
	if resource == "" || name == "" {
		return "", "", apierrors.NewBadRequest(fmt.Sprintf("revisions are listed of one object: fieldSelector needs both %s (such as deployments.apps) and %s", labelResource, labelName))
	}
	return resource, name, nil
}

// flag reads a boolean parameter.
func flag(c *verbs.Call, name string) bool {
	v := c.Info.Query.Get(name)
	return v == "true" || v == "1"
}

// moment reads a time parameter; the zero time if it is missing.
func moment(c *verbs.Call, name string) (t time.Time, err error) {
	text := c.Info.Query.Get(name)
	if text == "" {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339, text); err != nil {
		err = apierrors.NewBadRequest(fmt.Sprintf("%s: %q is not a time in RFC 3339, such as 2026-01-31T14:05:00Z", name, text))
	}
	return t, err
}

// bounds determines the range of writes.
func (p *page) bounds(ctx context.Context, token string) (err error) {
	if p.since, err = moment(p.c, "since"); err != nil {
		return err
	}
	if p.until, err = moment(p.c, "until"); err != nil {
		return err
	}
	if token != "" {
		p.before, err = p.continueBelow(token)
		return err
	}
	if p.until.IsZero() || p.until.After(p.h.Objects.Now()) {
		return nil
	}
	last, err := p.h.Objects.RevisionAt(ctx, p.until)
	p.before = last + 1
	return err
}

// fill reads and describes writes until the page is full or there are no more.
func (p *page) fill(ctx context.Context) error {
	var next *objects.Write // read, and not added yet: the write before it is unknown
	for n := readAtOnce; ; {
		writes, err := p.past(ctx, p.before, n)
		if err != nil {
			return err
		}
		size := 0
		for i := range writes {
			w := &writes[i]
			size += w.Item.Size()
			if next != nil {
				if err := p.add(ctx, next, w); err != nil {
					return err
				}
			}
			if w.WrittenAt.Before(p.since) {
				return nil
			}
			if p.full() {
				p.continueFrom = w.Item.Revision + 1
				return nil
			}
			// If all kept writes are newer than the time, the oldest kept one is excluded.
			if next != nil || p.until.IsZero() || !w.WrittenAt.After(p.until) {
				next = w
			}
		}
		p.read += size
		if len(writes) < n {
			if next == nil {
				return nil
			}
			return p.add(ctx, next, nil)
		}
		p.before = writes[len(writes)-1].Item.Revision
		if n = readAtOnce; size > largeBytes {
			n = 1
		}
	}
}

// full reports whether the page ends before the next write. Bytes that were read count even if the answer
// does not contain them.
func (p *page) full() bool {
	return len(p.items) == p.limit || p.read >= readBytes || len(p.items) > 0 && p.shown >= contentBytes
}

// add adds a write. A write that cannot be read is marked; in a list with objects it is an error, as in other
// lists.
func (p *page) add(ctx context.Context, w, before *objects.Write) error {
	r, err := p.describe(ctx, w, before, p.content)
	var unread *objects.Unreadable
	if errors.As(err, &unread) && !p.content {
		r, err = p.bare(w), nil
		r.Unreadable = "the stored object cannot be read"
	}
	if err != nil {
		return err
	}
	if r.Content != nil {
		p.shown += len(r.Content.Raw)
	}
	p.items = append(p.items, *r)
	return nil
}

// answer sends the page.
func (p *page) answer(form codecs.Form) error {
	list := &history.RevisionList{Items: p.items}
	if list.Items == nil {
		list.Items = []history.Revision{}
	}
	list.SetGroupVersionKind(history.GroupVersion.WithKind(p.c.Resource.ListKind))
	list.ResourceVersion = number(p.h.Objects.Revision())
	if p.continueFrom != 0 {
		list.Continue = p.token()
	}
	rows := make([]kinds.Object, len(list.Items))
	for i := range list.Items {
		rows[i] = &list.Items[i]
	}
	return p.h.Answers.Generated(&p.c.Request, form, http.StatusOK, rows, list)
}
