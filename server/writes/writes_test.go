package writes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/writes"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// desk is a writer on a store in memory, with an admission that notes what it is asked.
type desk struct {
	*writes.Writer
	t         *testing.T
	catalogue *kinds.Catalogue
	cache     *cache.Cache
	store     *sqlstore.Store
	asked     []string // of admission: operation, and object
	change    func(a *admission.Attributes) error
	refuse    func(a *admission.Attributes) error
	warnings  []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return newDeskOn(t, storetest.NewShared().Open())
}

func newDeskOn(t *testing.T, driver sqlstore.Driver) *desk {
	t.Helper()
	catalogue := kinds.NewCatalogue(builtin.Resources())
	store := sqlstore.New(driver, sqlstore.Config{})
	c := cache.New(catalogue)
	ctx, cancel := context.WithCancel(context.Background())
	from, err := c.Load(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- store.Run(ctx, from, c) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	d := &desk{t: t, catalogue: catalogue, cache: c, store: store}
	d.Writer = &writes.Writer{
		Objects: objects.New(catalogue, store, c), Owner: owner{}, Admission: admission.NewChain(d), Authorizer: authx.AlwaysAllow{},
		Clock: func() time.Time { return noon }, AnyNamespace: true,
	}
	return d
}

// Name implements admission.Plugin.
func (d *desk) Name() string { return "desk" }

// Handles implements admission.Plugin.
func (d *desk) Handles(admission.Operation) bool { return true }

// Admit implements admission.Mutator.
func (d *desk) Admit(_ context.Context, a *admission.Attributes) error {
	d.asked = append(d.asked, fmt.Sprintf("admit %s %s/%s", a.Operation, a.Namespace, a.Name))
	if d.change != nil {
		return d.change(a)
	}
	return nil
}

// Validate implements admission.Validator.
func (d *desk) Validate(_ context.Context, a *admission.Attributes) error {
	d.asked = append(d.asked, fmt.Sprintf("validate %s %s/%s", a.Operation, a.Namespace, a.Name))
	if d.refuse != nil {
		return d.refuse(a)
	}
	return nil
}

// owner notes the last manager, and applies nothing.
type owner struct{}

func (owner) AfterCreate(_ *kinds.Resource, sub string, obj kinds.Object, manager string, _ time.Time) error {
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Subresource: sub, Operation: metav1.ManagedFieldsOperationUpdate}})
	return nil
}

func (o owner) AfterUpdate(r *kinds.Resource, sub string, _, obj kinds.Object, manager string, now time.Time) error {
	return o.AfterCreate(r, sub, obj, manager, now)
}

func (o owner) Apply(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, _ bool, now time.Time) (kinds.Object, bool, error) {
	obj := r.New()
	if _, err := (jsoncodec.Codec{}).Decode(patch, obj, codecs.Strict); err != nil {
		return nil, false, err
	}
	if live != nil {
		obj.SetUID(live.GetUID())
		obj.SetCreationTimestamp(live.GetCreationTimestamp())
	}
	return obj, true, o.AfterCreate(r, sub, obj, manager, now)
}

func (owner) ApplyScale(*kinds.Resource, string, kinds.Object, []byte, string, bool) (*autoscalingv1.Scale, []metav1.ManagedFieldsEntry, error) {
	return nil, nil, errors.New("not asked for")
}

// request returns a request of a user with the right for its verb, for an object of a.
func (d *desk) request(verb, plural, sub, name string) *writes.Request {
	d.t.Helper()
	group, version := "", "v1"
	if plural == "deployments" {
		group = "apps"
	}
	r := d.catalogue.Lookup(group, version, plural)
	req := &writes.Request{
		Resource: r, Sub: r.Sub(sub), Namespace: "a", Name: name, Verb: verb, User: &authx.Identity{Name: "ann"}, Manager: "tester",
		Warn: func(text string) { d.warnings = append(d.warnings, text) }, Annotate: func(string, string) {},
	}
	req.Permit = d.permit(verb, r, sub, name)
	return req
}

func (d *desk) permit(verb string, r *kinds.Resource, sub, name string) permits.Permit {
	d.t.Helper()
	a := &authx.Attributes{User: &authx.Identity{Name: "ann"}, ResourceRequest: true, Verb: verb, APIGroup: r.Group, Resource: r.Plural, Subresource: sub, Name: name}
	if r.Namespaced {
		a.Namespace = "a"
	}
	p, _, err := permits.Authorize(d.t.Context(), authx.AlwaysAllow{}, a)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

// create makes a ConfigMap and forgets what admission was asked.
func (d *desk) create(obj *corev1.ConfigMap) *writes.Outcome {
	d.t.Helper()
	out, err := d.Create(d.t.Context(), d.request("create", "configmaps", "", ""), obj)
	if err != nil {
		d.t.Fatal(err)
	}
	d.asked = nil
	return out
}

// put returns a PUT of an object as it is computed.
func put(compute func(old kinds.Object) (kinds.Object, error)) *writes.Change {
	return &writes.Change{Compute: func(old kinds.Object, _ *cache.Item) (kinds.Object, error) { return compute(old) }}
}

// TestCreate: the server sets its fields, admission runs before and after validation,
// and the outcome is stored.
func TestCreate(t *testing.T) {
	d := newDesk(t)
	d.change = func(a *admission.Attributes) error {
		a.Object.(*corev1.ConfigMap).Data = map[string]string{"admitted": "yes"}
		return nil
	}
	obj := configMap("x", nil)
	obj.UID, obj.DeletionTimestamp = "chosen", &metav1.Time{Time: noon}
	out, err := d.Create(t.Context(), d.request("create", "configmaps", "", ""), obj)
	if err != nil {
		t.Fatal(err)
	}
	m := out.Object.(*corev1.ConfigMap)
	if !out.Created || m.UID == "" || m.UID == "chosen" || m.DeletionTimestamp != nil || !m.CreationTimestamp.Time.Equal(noon) || m.Namespace != "a" ||
		m.Data["admitted"] != "yes" || m.ManagedFields[0].Manager != "tester" {
		t.Errorf("%+v", m)
	}
	if want := []string{"admit CREATE a/x", "validate CREATE a/x"}; !slices.Equal(d.asked, want) {
		t.Errorf("admission was asked %q", d.asked)
	}
	if item := d.cache.Get("configmaps", "a", "x"); item == nil || item != out.Item || !strings.Contains(string(item.JSON()), `"admitted":"yes"`) {
		t.Errorf("stored: %v", item)
	}
	if _, err := d.Create(t.Context(), d.request("create", "configmaps", "", ""), configMap("x", nil)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("again: %v", err)
	}
}

// TestDryRun: all is decided, and nothing is stored.
func TestDryRun(t *testing.T) {
	d := newDesk(t)
	d.create(configMap("x", map[string]string{"k": "v"}))
	before := d.cache.Revision()
	dry := func(req *writes.Request) *writes.Request {
		req.DryRun = true
		return req
	}
	out, err := d.Create(t.Context(), dry(d.request("create", "configmaps", "", "")), configMap("y", nil))
	if err != nil || out.Item.Revision != 0 || !bytes.Contains(out.Item.JSON(), []byte(out.Object.GetUID())) {
		t.Errorf("create: %+v %v", out, err)
	}
	if _, err := d.Create(t.Context(), dry(d.request("create", "configmaps", "", "")), configMap("x", nil)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create of what is there: %v", err)
	}
	out, err = d.Update(t.Context(), dry(d.request("update", "configmaps", "", "x")), put(func(old kinds.Object) (kinds.Object, error) {
		obj := objects.Copy(old).(*corev1.ConfigMap)
		obj.Data["k"] = "w"
		return obj, nil
	}))
	if err != nil || out.Item.Revision != before || !bytes.Contains(out.Item.JSON(), []byte(`"data":{"k":"w"}`)) || out.Object.(*corev1.ConfigMap).Data["k"] != "w" {
		t.Errorf("update: %+v %v", out, err)
	}
	req := dry(d.request("delete", "configmaps", "", "x"))
	out, err = d.Delete(t.Context(), req, &writes.Deletion{Name: "x", Options: &metav1.DeleteOptions{DryRun: []string{"All"}}})
	if err != nil || out.Item.Revision != before || !out.Gone {
		t.Errorf("delete: %+v %v", out, err)
	}
	if now := d.cache.Get("configmaps", "a", "x"); d.cache.Revision() != before || now.Revision != before || !bytes.Contains(now.JSON(), []byte(`"k":"v"`)) {
		t.Error("a dry run was stored")
	}
}

// TestReorderedOwners: a write that changes only times of managed fields is not stored, although entries are in the order of their
// times. One that changes an entry is.
func TestReorderedOwners(t *testing.T) {
	d := newDesk(t)
	d.create(configMap("x", map[string]string{"k": "v"}))
	entry := func(manager, fields string, minute int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
			Time: &metav1.Time{Time: noon.Add(time.Duration(minute) * time.Minute)}, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	}
	const first, second = `{"f:data":{"f:a":{}}}`, `{"f:data":{"f:b":{}}}`
	write := func(entries ...metav1.ManagedFieldsEntry) int64 {
		t.Helper()
		d.change = func(a *admission.Attributes) error {
			a.Meta().SetManagedFields(entries)
			return nil
		}
		out, err := d.Update(t.Context(), d.request("update", "configmaps", "", "x"), put(func(old kinds.Object) (kinds.Object, error) { return objects.Copy(old), nil }))
		if err != nil {
			t.Fatal(err)
		}
		return out.Item.Revision
	}
	before := write(entry("a", first, 1), entry("b", second, 2))
	if now := write(entry("b", second, 2), entry("a", first, 3)); now != before {
		t.Errorf("a later time of an entry is stored, at %d after %d", now, before)
	}
	if now := write(entry("b", second, 2), entry("a", second, 3)); now == before {
		t.Error("another entry is not stored")
	}
}

// TestRefusals: whichever step refuses, nothing is stored.
func TestRefusals(t *testing.T) {
	no := errors.New("no")
	for what, refuse := range map[string]func(d *desk){
		"admission before": func(d *desk) { d.change = func(*admission.Attributes) error { return no } },
		"admission after":  func(d *desk) { d.refuse = func(*admission.Attributes) error { return no } },
	} {
		d := newDesk(t)
		d.create(configMap("x", nil))
		before := d.cache.Revision()
		refuse(d)
		if _, err := d.Create(t.Context(), d.request("create", "configmaps", "", ""), configMap("y", nil)); !errors.Is(err, no) {
			t.Errorf("%s, create: %v", what, err)
		}
		if _, err := d.Update(t.Context(), d.request("update", "configmaps", "", "x"), put(func(old kinds.Object) (kinds.Object, error) { return objects.Copy(old), nil })); !errors.Is(err, no) {
			t.Errorf("%s, update: %v", what, err)
		}
		if _, err := d.Delete(t.Context(), d.request("delete", "configmaps", "", "x"), &writes.Deletion{Name: "x", Options: &metav1.DeleteOptions{}}); !errors.Is(err, no) {
			t.Errorf("%s, delete: %v", what, err)
		}
		if d.cache.Revision() != before {
			t.Errorf("%s: something was stored", what)
		}
	}
}

// TestRefusalOfBusyObject: a refusal of an object that changes during every attempt is final at the second one, whose object is
// newer than the request.
func TestRefusalOfBusyObject(t *testing.T) {
	d := newDesk(t)
	d.create(configMap("x", nil))
	no := apierrors.NewForbidden(d.catalogue.Lookup("", "v1", "configmaps").GroupResource(), "x", errors.New("no"))
	attempts := 0
	d.refuse = func(a *admission.Attributes) error {
		if _, refused := a.Object.(*corev1.ConfigMap).Data["refused"]; !refused {
			return nil
		}
		attempts++
		_, err := d.Update(t.Context(), d.request("update", "configmaps", "", "x"), put(func(old kinds.Object) (kinds.Object, error) {
			obj := objects.Copy(old).(*corev1.ConfigMap)
			obj.Data = map[string]string{"attempt": strconv.Itoa(attempts)}
			return obj, nil
		}))
		if err != nil || attempts > 5 {
			t.Fatal(attempts, err)
		}
		return no
	}
	req := d.request("update", "configmaps", "", "x")
	req.DryRun = true
	_, err := d.Update(t.Context(), req, put(func(old kinds.Object) (kinds.Object, error) {
		obj := objects.Copy(old).(*corev1.ConfigMap)
		obj.Data = map[string]string{"refused": "yes"}
		return obj, nil
	}))
	if !errors.Is(err, no) || attempts != 2 {
		t.Errorf("%v, after %d attempts", err, attempts)
	}
}

// TestPermits: a write with another permit than its own changes nothing.
func TestPermits(t *testing.T) {
	d := newDesk(t)
	d.create(configMap("x", nil))
	before := d.cache.Revision()
	uncovered := func(what string, err error) {
		t.Helper()
		var e *permits.UncoveredError
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", what, err)
		}
	}
	with := func(req *writes.Request, p permits.Permit) *writes.Request {
		req.Permit = p
		return req
	}
	r := d.catalogue.Lookup("", "v1", "configmaps")
	for what, p := range map[string]permits.Permit{
		"none": {}, "get": d.permit("get", r, "", "x"), "another object": d.permit("update", r, "", "y"), "another kind": d.permit("update", d.catalogue.Lookup("", "v1", "secrets"), "", "x"),
	} {
		_, err := d.Create(t.Context(), with(d.request("create", "configmaps", "", ""), p), configMap("new", nil))
		uncovered(what+", create", err)
		_, err = d.Update(t.Context(), with(d.request("update", "configmaps", "", "x"), p), put(func(old kinds.Object) (kinds.Object, error) {
			obj := objects.Copy(old).(*corev1.ConfigMap)
			obj.Data = map[string]string{"k": "v"}
			return obj, nil
		}))
		uncovered(what+", update", err)
		_, err = d.Delete(t.Context(), with(d.request("delete", "configmaps", "", "x"), p), &writes.Deletion{Name: "x", Options: &metav1.DeleteOptions{}})
		uncovered(what+", delete", err)
	}
	if d.cache.Revision() != before {
		t.Error("something was stored")
	}
}

// TestUpdateThatCreates: an update of a missing object is authorized as a create, and admission sees a
// create.
func TestUpdateThatCreates(t *testing.T) {
	d := newDesk(t)
	req := d.request("update", "configmaps", "", "x")
	make := put(func(old kinds.Object) (kinds.Object, error) {
		if old != nil {
			t.Error("there is an old object")
		}
		return configMap("x", nil), nil
	})
	if _, err := d.Update(t.Context(), req, make); !apierrors.IsNotFound(err) {
		t.Errorf("without leave: %v", err)
	}
	make.MayCreate = true
	d.Authorizer = nil
	if _, err := d.Update(t.Context(), req, make); !apierrors.IsForbidden(err) || d.cache.Get("configmaps", "a", "x") != nil {
		t.Errorf("forbidden: %v", err)
	}
	asked := &only{verb: "create"}
	d.Authorizer = asked
	out, err := d.Update(t.Context(), req, make)
	if err != nil || !out.Created || d.cache.Get("configmaps", "a", "x") == nil {
		t.Errorf("%+v %v", out, err)
	}
	if want := []string{"create configmaps a/x"}; !slices.Equal(asked.requests, want) {
		t.Errorf("the authorizer was asked %q", asked.requests)
	}
	if want := []string{"admit CREATE a/x", "validate CREATE a/x"}; !slices.Equal(d.asked, want) {
		t.Errorf("admission was asked %q", d.asked)
	}
}

// only allows one verb, and notes what it is asked.
type only struct {
	verb     string
	requests []string
}

func (o *only) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	o.requests = append(o.requests, fmt.Sprintf("%s %s %s/%s", a.Verb, a.Resource, a.Namespace, a.Name))
	if a.Verb == o.verb {
		return authx.Allow, "", nil
	}
	return authx.NoOpinion, "", nil
}

// TestComputedAgain: an update that lost to another is computed again on the new state, and one that named a
// resource version conflicts.
func TestComputedAgain(t *testing.T) {
	d := newDesk(t)
	first := d.create(configMap("x", map[string]string{"n": "0"}))
	interfere := true
	tries := 0
	out, err := d.Update(t.Context(), d.request("patch", "configmaps", "", "x"), put(func(old kinds.Object) (kinds.Object, error) {
		tries++
		obj := objects.Copy(old).(*corev1.ConfigMap)
		if interfere {
			interfere = false
			_, err := d.Update(t.Context(), d.request("update", "configmaps", "", "x"), put(func(old kinds.Object) (kinds.Object, error) {
				other := objects.Copy(old).(*corev1.ConfigMap)
				other.Data["n"] = "1"
				return other, nil
			}))
			if err != nil {
				return nil, err
			}
		}
		obj.ResourceVersion = "" // names none
		obj.Data["mine"] = obj.Data["n"]
		return obj, nil
	}))
	if err != nil || tries != 2 || out.Object.(*corev1.ConfigMap).Data["mine"] != "1" {
		t.Errorf("%d tries: %+v %v", tries, out, err)
	}
	pinned := put(func(old kinds.Object) (kinds.Object, error) {
		obj := objects.Copy(old).(*corev1.ConfigMap)
		obj.ResourceVersion = fmt.Sprint(first.Item.Revision)
		obj.Data["n"] = "2"
		return obj, nil
	})
	pinned.Pinned = true
	if _, err := d.Update(t.Context(), d.request("update", "configmaps", "", "x"), pinned); !apierrors.IsConflict(err) {
		t.Errorf("a resource version that was: %v", err)
	}
}

// TestReplace: an object that a client sent replaces the live one, and is read again after a conflict. One of another name is
// refused.
func TestReplace(t *testing.T) {
	d := newDesk(t)
	d.create(configMap("x", map[string]string{"n": "0"}))
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "u"}
	sent := func() (kinds.Object, error) {
		obj := configMap("x", map[string]string{"n": "2"})
		obj.OwnerReferences = []metav1.OwnerReference{owner, owner}
		return obj, nil
	}
	attempts, again := 0, 0
	d.change = func(a *admission.Attributes) error {
		if attempts++; attempts == 1 {
			d.set("x", "n", "1")
		}
		return nil
	}
	obj, _ := sent()
	out, err := d.Replace(t.Context(), d.request("update", "configmaps", "", "x"), obj, func() (kinds.Object, error) {
		again++
		return sent()
	})
	if err != nil || again != 1 || out.Object.(*corev1.ConfigMap).Data["n"] != "2" || len(out.Object.GetOwnerReferences()) != 1 {
		t.Errorf("%d times again: %+v %v", again, out, err)
	}
	if len(d.warnings) != 2 || d.warnings[0] != d.warnings[1] || !strings.Contains(d.warnings[0], "duplicate") {
		t.Errorf("warnings: %q", d.warnings)
	}
	if _, err := d.Replace(t.Context(), d.request("update", "configmaps", "", "x"), configMap("y", nil), sent); !apierrors.IsBadRequest(err) {
		t.Errorf("another name: %v", err)
	}
}

// TestNothingChanges: an unchanged object is not written again.
func TestNothingChanges(t *testing.T) {
	d := newDesk(t)
	made := d.create(configMap("x", map[string]string{"k": "v"}))
	out, err := d.Update(t.Context(), d.request("update", "configmaps", "", "x"), put(func(old kinds.Object) (kinds.Object, error) { return objects.Copy(old), nil }))
	if err != nil || out.Item.Revision != made.Item.Revision || d.cache.Revision() != made.Item.Revision {
		t.Errorf("%+v %v", out, err)
	}
}

// TestDeleteWaits: finalizers keep an object, which goes with the last of them.
func TestDeleteWaits(t *testing.T) {
	d := newDesk(t)
	obj := configMap("x", nil)
	obj.Finalizers = []string{"example.com/keep"}
	d.create(obj)
	remove := func() *writes.Outcome {
		t.Helper()
		out, err := d.Delete(t.Context(), d.request("delete", "configmaps", "", "x"), &writes.Deletion{Name: "x", Options: &metav1.DeleteOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := remove(); out.Gone || out.Object.GetDeletionTimestamp() == nil || d.cache.Get("configmaps", "a", "x") == nil {
		t.Errorf("%+v", out)
	}
	if want := []string{"admit DELETE a/x", "validate DELETE a/x"}; !slices.Equal(d.asked, want) {
		t.Errorf("admission was asked %q", d.asked)
	}
	_, err := d.Update(t.Context(), d.request("update", "configmaps", "", "x"), put(func(old kinds.Object) (kinds.Object, error) {
		obj := objects.Copy(old)
		obj.SetFinalizers(nil)
		return obj, nil
	}))
	if err != nil || d.cache.Get("configmaps", "a", "x") != nil {
		t.Errorf("it stays: %v", err)
	}
}

// TestPreconditions: a delete of another object than was meant is a conflict.
func TestPreconditions(t *testing.T) {
	d := newDesk(t)
	d.create(configMap("x", nil))
	for _, p := range []metav1.Preconditions{{UID: new(types.UID("another"))}, {ResourceVersion: new("999")}} {
		_, err := d.Delete(t.Context(), d.request("delete", "configmaps", "", "x"), &writes.Deletion{Name: "x", Options: &metav1.DeleteOptions{Preconditions: &p}})
		if !apierrors.IsConflict(err) || d.cache.Get("configmaps", "a", "x") == nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestPatchAndApply: both end in an update, the one with problems as warnings.
func TestPatchAndApply(t *testing.T) {
	d := newDesk(t)
	d.create(configMap("x", map[string]string{"k": "v"}))
	out, err := d.Patch(t.Context(), d.request("patch", "configmaps", "", "x"), &apply.Patch{
		Type: codecs.PatchMerge, Body: []byte(`{"data":{"k":"w"},"dat":{}}`), Strictness: codecs.Warn, JSON: jsoncodec.Codec{},
	})
	if err != nil || out.Object.(*corev1.ConfigMap).Data["k"] != "w" || len(d.warnings) != 1 || !strings.Contains(d.warnings[0], `unknown field "dat"`) {
		t.Errorf("%+v %v, warned %q", out, err, d.warnings)
	}
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y","namespace":"a"},"data":{"k":"v"}}`)
	out, err = d.Apply(t.Context(), d.request("patch", "configmaps", "", "y"), &writes.Applied{Body: body})
	if err != nil || !out.Created || d.cache.Get("configmaps", "a", "y") == nil {
		t.Errorf("%+v %v", out, err)
	}
	if out, err = d.Apply(t.Context(), d.request("patch", "configmaps", "", "y"), &writes.Applied{Body: body}); err != nil || out.Created {
		t.Errorf("again: %+v %v", out, err)
	}
}

// TestRewrite: only the permit of a rewrite is checked.
func TestRewrite(t *testing.T) {
	d := newDesk(t)
	d.create(configMap("x", map[string]string{"k": "v"}))
	req := d.request("update", "configmaps", "", "x")
	at := objects.Place{Resource: req.Resource, Namespace: "a", Name: "x"}
	obj, err := d.Rewrite(t.Context(), req, at, func(obj kinds.Object) error {
		obj.(*corev1.ConfigMap).Data["k"] = "w"
		return nil
	})
	if err != nil || obj.GetResourceVersion() != fmt.Sprint(d.cache.Revision()) || len(d.asked) != 0 {
		t.Errorf("%+v %v, asked %q", obj, err, d.asked)
	}
	at.Name = "absent"
	req.Permit = d.permit("update", req.Resource, "", "absent")
	if _, err := d.Rewrite(t.Context(), req, at, func(kinds.Object) error { return nil }); !apierrors.IsNotFound(err) {
		t.Errorf("of what is not there: %v", err)
	}
}
