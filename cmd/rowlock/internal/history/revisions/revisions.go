// Package revisions reads the history of objects from a server: by the group history.rowlock.dev, and by lists at
// exact resource versions. It never writes.
package revisions

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/moments"
	"github.com/rowlock/rowlock/server/history"
)

// The API group of history.
const (
	Group = "history.rowlock.dev"
	Root  = "/apis/" + Group + "/v1"
)

// page is the number of revisions in a request; the server's maximum is 100.
const page = 100

// Object is an object as JSON: whole numbers are int64.
type Object = map[string]any

// Revision is one write of one object.
type Revision history.Revision

// Deleted reports whether this write deleted the object.
func (r *Revision) Deleted() bool { return r.Change == history.Deleted }

// Number returns the revision as a number.
func (r *Revision) Number() int64 {
	n, _ := strconv.ParseInt(r.Revision, 10, 64) // 0 if it is not a number
	return n
}

// Decoded returns the object after this write.
func (r *Revision) Decoded() (Object, error) {
	if r.Unreadable != "" || r.Content == nil {
		return nil, fmt.Errorf("revision %s cannot be read: %s", r.Revision, r.Unreadable)
	}
	var obj Object
	if err := utiljson.Unmarshal(r.Content.Raw, &obj); err != nil {
		return nil, fmt.Errorf("revision %s: %w", r.Revision, err)
	}
	return obj, nil
}

// Weight estimates the bytes that the revision takes in memory.
func (r *Revision) Weight() int {
	size := 1 << 10
	for _, f := range r.ChangedFields {
		size += 16 + len(f)
	}
	for _, m := range r.Managers {
		size += 128 + len(m.Manager)
	}
	if r.Content != nil {
		size += len(r.Content.Raw)
	}
	return size
}

// By returns the managers of the write without duplicates, in the server's order.
func (r *Revision) By() []string {
	var names []string
	for _, m := range r.Managers {
		if !slices.Contains(names, m.Manager) {
			names = append(names, m.Manager)
		}
	}
	return names
}

// Query selects revisions.
type Query struct {
	Since, Until moments.Moment // zero: no bound; both inclusive
	Most         int            // revisions at most; 0: no bound
	Content      bool           // with the objects
	PageSize     int            // default and most: 100
}

// List calls do for the revisions of an object, newest first, until do returns false. more reports whether there
// are more than Most.
func List(ctx context.Context, c *cluster.Client, t cluster.Target, q Query, do func(*Revision) (bool, error)) (more bool, err error) {
	query := url.Values{"fieldSelector": {"object.resource=" + t.Resource.String() + ",object.name=" + t.Name}}
	for name, bound := range map[string]moments.Moment{"since": q.Since, "until": q.Until} {
		if !bound.Time.IsZero() {
			query.Set(name, bound.String())
		}
	}
	if q.Content {
		query.Set("content", "true")
	}
	size := q.PageSize
	if size <= 0 || size > page {
		size = page
	}
	for n := 0; ; {
		if q.Most > 0 {
			size = min(size, q.Most-n)
		}
		query.Set("limit", strconv.Itoa(size))
		var list struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []Revision      `json:"items"`
		}
		if err := c.Do(ctx, cluster.Request{Path: collection(t), Query: query}, &list); err != nil {
			return false, requestError(t, err)
		}
		for i := range list.Items {
			number := list.Items[i].Number()
			if q.Until.Revision > 0 && number > q.Until.Revision {
				continue
			}
			if number < q.Since.Revision {
				return false, nil
			}
			goOn, err := do(&list.Items[i])
			if err != nil || !goOn {
				return true, err
			}
			if n++; n == q.Most {
				return list.Metadata.Continue != "" || i+1 < len(list.Items), nil
			}
		}
		if list.Metadata.Continue == "" {
			return false, nil
		}
		query.Set("continue", list.Metadata.Continue)
	}
}

// Get returns the revision that was current at a moment, with the object.
func Get(ctx context.Context, c *cluster.Client, t cluster.Target, at moments.Moment) (*Revision, error) {
	when := at.String()
	if at.Revision == 0 {
		when = "at-" + when
	}
	var r Revision
	path := collection(t) + "/" + url.PathEscape(t.Resource.String()+":"+t.Name+":"+when)
	if err := c.Do(ctx, cluster.Request{Path: path}, &r); err != nil {
		return nil, requestError(t, err)
	}
	return &r, nil
}

func collection(t cluster.Target) string {
	if t.Namespace == "" {
		return Root + "/clusterrevisions"
	}
	return Root + "/namespaces/" + url.PathEscape(t.Namespace) + "/revisions"
}

// requestError adds the target to an error of a request, and explains a server without the history API.
func requestError(t cluster.Target, err error) error {
	if missing(err) {
		return fmt.Errorf("the past of %s: the server does not serve %s: it is not rowlock, is an older release of it, or runs with --history-api=false", t, Group)
	}
	return fmt.Errorf("the past of %s: %w", t, err)
}

// missing: 404 for the path and not for an object of it.
func missing(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// At returns the revision that was current at a moment, as a number.
func At(ctx context.Context, c *cluster.Client, m moments.Moment) (int64, error) {
	if m.Revision > 0 {
		return m.Revision, nil
	}
	return held(ctx, c, m.String())
}

// Now returns the newest revision.
func Now(ctx context.Context, c *cluster.Client) (int64, error) { return held(ctx, c, "now") }

func held(ctx context.Context, c *cluster.Client, name string) (int64, error) {
	var h history.Moment
	if err := c.Do(ctx, cluster.Request{Path: Root + "/moments/" + url.PathEscape(name)}, &h); err != nil {
		if missing(err) {
			return 0, fmt.Errorf("the server does not serve %s: it is not rowlock, is an older release of it, or runs with --history-api=false; give a revision instead of a time, which needs no history API", Group)
		}
		return 0, fmt.Errorf("asking which revision held: %w", err)
	}
	n, err := strconv.ParseInt(h.Revision, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("what held at %s: the server answers revision %q", name, h.Revision)
	}
	return n, nil
}
