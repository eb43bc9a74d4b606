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

// What a page may cost: so many revisions, so many where none are asked for, so many bytes read
// of the table, and so many of objects in the answer. The last write of a page may go beyond them.
const (
	mostRevisions  = 100
	usualRevisions = 50
	readBytes      = 16 << 20
	contentBytes   = 4 << 20
)

// readAtOnce is how many writes are read before anything is known of their sizes: so many of the
// largest are no more than a few bodies are, whatever was read before them. Where they were
// large the next is read alone.
const (
	readAtOnce = 4
	largeBytes = 1 << 20
)

// Labels of the field selector that says whose past is listed.
const (
	labelResource = "object.resource"
	labelName     = "object.name"
)

// page is a list on its way.
type page struct {
	*object
	limit        int
	content      bool
	since        time.Time // older revisions are left out; zero: none are
	until        time.Time // so are newer ones
	before       int64     // writes below it come
	items        []history.Revision
	read, shown  int   // bytes
	continueFrom int64 // what the next page begins below; 0: there is none
}

// list answers with a page of the writes of one object, the newest first.
func (t *teller) list(h *verbs.Handler, c *verbs.Call) error {
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
		p.limit = int(min(options.Limit, mostRevisions))
	}
	if err := p.bounds(c.R.Context(), options.Continue); err != nil {
		return err
	}
	if err := p.fill(c.R.Context()); err != nil {
		return err
	}
	return p.answer(form)
}

// selected is the object that a list is about.
func selected(c *verbs.Call, o *objects.ListOptions) (resource, name string, err error) {
	if c.Resource.Namespaced && c.Info.Namespace == "" {
		return "", "", apierrors.NewBadRequest("revisions are listed of one object, in its namespace: name that")
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return "", "", apierrors.NewBadRequest("resourceVersion: the past is told as it is known now; since and until select times")
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

// flag reads a parameter that is true or false.
func flag(c *verbs.Call, name string) bool {
	v := c.Info.Query.Get(name)
	return v == "true" || v == "1"
}

// moment reads a parameter that is a time, the zero time where it is not given.
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

// bounds settles between which writes the list lies.
func (p *page) bounds(ctx context.Context, token string) (err error) {
	if p.since, err = moment(p.c, "since"); err != nil {
		return err
	}
	if p.until, err = moment(p.c, "until"); err != nil {
		return err
	}
	if token != "" {
		p.before, err = p.goOn(token)
		return err
	}
	if p.until.IsZero() || p.until.After(p.h.Objects.Now()) {
		return nil
	}
	last, err := p.h.Objects.RevisionAt(ctx, p.until)
	p.before = last + 1
	return err
}

// fill reads writes and tells of each, until the page is full or there are no more.
func (p *page) fill(ctx context.Context) error {
	var next *objects.Write // read, and not shown yet: what came before it is not known
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
			// Of a time that is older than all that is kept, the oldest that is kept is not.
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

// full says that the page ends before the next write. Bytes that were read count also where
// nothing of them is shown.
func (p *page) full() bool {
	return len(p.items) == p.limit || p.read >= readBytes || len(p.items) > 0 && p.shown >= contentBytes
}

// add tells of a write. One that cannot be read says so; with objects in the answer it is
// refused, as a list of it is.
func (p *page) add(ctx context.Context, w, before *objects.Write) error {
	r, err := p.tell(ctx, w, before, p.content)
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
	return p.h.Answers.Made(&p.c.Request, form, http.StatusOK, rows, list)
}
