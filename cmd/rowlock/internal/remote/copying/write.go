package copying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/sqlstore/archive/recreate"
)

const applyType = "application/apply-patch+yaml" // which JSON is, too

// perform writes one object and reports its outcome. An error concerns the connection and ends the copy.
func (c *copier) perform(ctx context.Context, t *task) error {
	outcome, reason, uid, err := c.put(ctx, t)
	var refused *remote.StatusError
	var malformed *remote.MalformedError
	switch {
	case errors.As(err, &refused) && refused.Code != http.StatusUnauthorized:
		if outcome, reason = Failed, reason+refused.Message; refused.Code == http.StatusConflict {
			outcome = Conflict
		}
	case errors.As(err, &malformed):
		outcome, reason = Failed, reason+err.Error()
	case err != nil:
		return fmt.Errorf("writing %s %s: %w", t.Resource, t.name, err)
	}
	c.settle(t.uid, uid)
	c.report.add(t, outcome, reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written++; c.o.Progress != nil {
		c.o.Progress(c.written)
	}
	return nil
}

// put writes an object to the target. uid is the UID of the object there, "" if there is none. reason names
// the part of the object that an error concerns, "" for the whole.
func (c *copier) put(ctx context.Context, t *task) (o Outcome, reason, uid string, err error) {
	r, ok := c.target.Find(t.group, t.plural)
	switch {
	case !ok && c.o.DryRun && c.isPlanned(t.Resource):
		return Created, "not tried: its definition is not there yet", t.uid, nil
	case !ok:
		return Failed, "the target does not serve " + t.Resource, "", nil
	case r.Namespaced != (t.namespace != ""):
		return Failed, "the target has the resource in another scope", "", nil
	}
	if err := c.translate(ctx, t, r); err != nil {
		return Failed, err.Error(), "", nil
	}
	r.Version = t.version
	status := clean(t, r)
	live, err := c.get(ctx, t, r)
	if err != nil {
		return "", "", "", err
	}
	if live == nil && t.namespace != "" && c.isPlanned("namespaces/"+t.namespace) {
		return Created, "not tried: its namespace is not there yet", t.uid, nil
	}
	o, body, err := c.apply(ctx, t, r, live)
	if live != nil {
		uid = uidOf(live)
	}
	if err != nil {
		return "", "", uid, err
	}
	if o != Unchanged {
		uid = uidOf(body)
	}
	if c.o.DryRun && o == Created {
		c.plan(t)
		return o, "", uid, nil // there is no object whose status could be written
	}
	if c.o.WithStatus && status != nil && r.Status && !settled[t.Resource] {
		changed, err := c.status(ctx, t, r, status, body)
		if err != nil {
			return "", fmt.Sprintf("it was %s, but not its status: ", o), uid, err
		}
		if changed && o == Unchanged {
			o = Changed
		}
	}
	return o, "", uid, nil
}

// settled are resources whose status depends on the target cluster.
var settled = map[string]bool{"namespaces": true, definitions: true, "apiservices.apiregistration.k8s.io": true}

// translate converts an object to a version that the target serves.
func (c *copier) translate(ctx context.Context, t *task, r remote.Resource) error {
	if slices.Contains(r.Served, t.version) {
		return nil
	}
	none := fmt.Errorf("the target serves %s as %s, not as %s", t.Resource, strings.Join(r.Served, ", "), t.version)
	if c.o.Convert == nil {
		return none
	}
	object, err := c.o.Convert(ctx, t.object, r.Group, r.Served[0])
	if err != nil {
		return fmt.Errorf("%w: %w", none, err)
	}
	t.object, t.version = object, r.Served[0]
	return nil
}

// clean deletes the fields that the target sets. It returns the status if that is a subresource.
func clean(t *task, r remote.Resource) any {
	recreate.Object(t.Resource, t.object)
	var status any
	if r.Status {
		status = t.object["status"]
		delete(t.object, "status")
	}
	if t.Resource == "namespaces" {
		delete(t.object, "spec") // its finalizer
	}
	return status
}

func (c *copier) get(ctx context.Context, t *task, r remote.Resource) ([]byte, error) {
	data, err := c.to.Do(ctx, remote.Request{Method: http.MethodGet, Path: t.path(r)})
	if remote.Is(err, http.StatusNotFound) {
		return nil, nil
	}
	return data, err
}

// apply writes an object that is missing or different. body is the object afterwards.
func (c *copier) apply(ctx context.Context, t *task, r remote.Resource, live []byte) (o Outcome, body []byte, err error) {
	if live != nil {
		if err := c.keepAddresses(ctx, t, live); err != nil {
			return "", nil, err
		}
		same, err := c.equal(ctx, t, r, live)
		if err != nil {
			return "", nil, err
		}
		if same {
			return Unchanged, live, nil
		}
	}
	body, err = c.patch(ctx, t, r)
	for range 2 {
		if err == nil || !c.withoutAddresses(t, err) {
			break
		}
		body, err = c.patch(ctx, t, r)
	}
	var refused *remote.StatusError
	if live == nil && errors.As(err, &refused) && repeats(refused) {
		body, err = c.create(ctx, t, r)
	}
	switch {
	case err != nil:
		return "", nil, err
	case live == nil:
		return Created, body, nil
	}
	other, err := c.differs(ctx, live, body)
	if err != nil || other {
		return Changed, body, err
	}
	return Unchanged, body, nil
}

// differs reports whether a write changed an object. A dry run leaves the resource version as it was.
func (c *copier) differs(ctx context.Context, before, after []byte) (bool, error) {
	if !c.o.DryRun {
		return versionOf(before) != versionOf(after), nil
	}
	done, err := c.look(ctx, before, after)
	if err != nil {
		return false, err
	}
	defer done()
	was, err := decode(before)
	if err != nil {
		return false, err
	}
	is, err := decode(after)
	return !reflect.DeepEqual(was, is), err
}

// repeats reports whether an apply was refused because entries of a list have the same key. Such objects can be
// created, but not applied.
func repeats(e *remote.StatusError) bool {
	return (e.Code == http.StatusInternalServerError || e.Code == http.StatusBadRequest || e.Code == http.StatusUnprocessableEntity) && strings.Contains(e.Message, "duplicate entries for key")
}

func (c *copier) options() url.Values {
	q := url.Values{"fieldManager": {Manager}}
	if c.o.DryRun {
		q.Set("dryRun", "All")
	}
	return q
}

func (c *copier) patch(ctx context.Context, t *task, r remote.Resource) ([]byte, error) {
	return c.applied(ctx, t.path(r), t.object)
}

// applied sends a server-side apply. It takes fields from other managers only with --overwrite.
func (c *copier) applied(ctx context.Context, path string, object map[string]any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	q := c.options()
	if c.o.Overwrite {
		q.Set("force", "true")
	}
	return c.to.Do(ctx, remote.Request{Method: http.MethodPatch, Path: path, Query: q, ContentType: applyType, Body: asYAML(data)})
}

// create creates an object. A retry after a lost answer finds it already there; it is ours if it is not different.
func (c *copier) create(ctx context.Context, t *task, r remote.Resource) ([]byte, error) {
	data, err := json.Marshal(t.object)
	if err != nil {
		return nil, err
	}
	body, err := c.to.Do(ctx, remote.Request{Method: http.MethodPost, Path: r.Path(t.namespace), Query: c.options(), ContentType: "application/json", Body: data})
	if !remote.Is(err, http.StatusConflict) {
		return body, err
	}
	live, failed := c.get(ctx, t, r)
	if failed != nil || live == nil {
		return nil, errors.Join(err, failed)
	}
	if same, failed := c.equal(ctx, t, r, live); failed != nil || !same {
		return nil, errors.Join(err, failed)
	}
	return live, nil
}

// hasStatus reports whether an object of the target has everything that a status has.
func (c *copier) hasStatus(ctx context.Context, status any, there []byte) (bool, error) {
	done, err := c.look(ctx, there)
	if err != nil {
		return false, err
	}
	defer done()
	has, err := decode(there)
	return within(status, has["status"]), err
}

// status writes the status of an object. Fields that controllers of the target own stay theirs.
func (c *copier) status(ctx context.Context, t *task, r remote.Resource, status any, there []byte) (bool, error) {
	if has, err := c.hasStatus(ctx, status, there); has || err != nil {
		return false, err
	}
	body, err := c.applied(ctx, t.path(r)+"/status", map[string]any{
		"apiVersion": r.APIVersion(), "kind": t.object["kind"], "status": status,
		"metadata": map[string]any{"name": t.name},
	})
	if err != nil {
		return false, err
	}
	return c.differs(ctx, there, body)
}
