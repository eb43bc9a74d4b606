package writes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/writes"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// twoDesks returns the writers of two servers on one database. The second one hears nothing of the first one's writes.
func twoDesks(t *testing.T) (first, second *desk) {
	t.Helper()
	memory := storetest.NewShared()
	return newDeskOn(t, memory.Open()), newDeskOn(t, storetest.WithoutHints{Driver: memory.Open()})
}

// set writes the data of a ConfigMap.
func (d *desk) set(name, key, value string) {
	d.t.Helper()
	_, err := d.Update(d.t.Context(), d.request("update", "configmaps", "", name), put(func(old kinds.Object) (kinds.Object, error) {
		obj := objects.Copy(old).(*corev1.ConfigMap)
		obj.Data = map[string]string{key: value}
		return obj, nil
	}))
	if err != nil {
		d.t.Fatal(err)
	}
}

// knows has a server read what there is.
func (d *desk) knows() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	if err := d.Objects.CatchUp(ctx); err != nil {
		d.t.Fatal(err)
	}
}

// protected refuses writes to ConfigMaps that have the data "protected".
func protected(a *admission.Attributes) error {
	if old, ok := a.Old.(*corev1.ConfigMap); ok && old.Data["protected"] != "" {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, errors.New("it is protected"))
	}
	return nil
}

// TestCatchUpWithoutHints: a server that hears of no other one's writes reads them from the table when a request needs them.
func TestCatchUpWithoutHints(t *testing.T) {
	first, second := twoDesks(t)
	first.create(configMap("x", nil))
	second.knows()
	if second.cache.Get("configmaps", "a", "x") == nil {
		t.Error("the object of the first server is missing")
	}
}

// TestDeleteBehind: a server does not refuse a delete because of an object that another server has changed since.
func TestDeleteBehind(t *testing.T) {
	first, second := twoDesks(t)
	second.refuse = protected
	first.create(configMap("x", map[string]string{"protected": "yes"}))
	second.knows()
	first.set("x", "protected", "")
	remove := func(dry ...string) error {
		_, err := second.Delete(t.Context(), second.request("delete", "configmaps", "", "x"), &writes.Deletion{Name: "x", Options: &metav1.DeleteOptions{DryRun: dry}})
		return err
	}
	if err := remove("All"); err != nil {
		t.Errorf("a dry run: %v", err)
	}
	first.set("x", "protected", "yes")
	if err := remove(); !apierrors.IsForbidden(err) {
		t.Errorf("an object that is protected: %v", err)
	}
	first.set("x", "protected", "")
	if err := remove(); err != nil {
		t.Errorf("an object that is not protected any more: %v", err)
	}
}

// TestDryRunBehind: a dry run starts from the newest object of all servers.
func TestDryRunBehind(t *testing.T) {
	first, second := twoDesks(t)
	first.create(configMap("x", map[string]string{"k": "old"}))
	second.knows()
	first.set("x", "k", "new")
	req := second.request("update", "configmaps", "", "x")
	req.DryRun = true
	label := put(func(old kinds.Object) (kinds.Object, error) {
		obj := objects.Copy(old)
		obj.SetLabels(map[string]string{"a": "b"})
		return obj, nil
	})
	out, err := second.Update(t.Context(), req, label)
	if err != nil || out.Object.(*corev1.ConfigMap).Data["k"] != "new" {
		t.Errorf("an update shows %+v, %v", out, err)
	}
	first.set("x", "k", "newer")
	out, err = second.Delete(t.Context(), second.request("delete", "configmaps", "", "x"), &writes.Deletion{Name: "x", Options: &metav1.DeleteOptions{DryRun: []string{"All"}}})
	if err != nil || out.Object.(*corev1.ConfigMap).Data["k"] != "newer" {
		t.Errorf("a delete shows %+v, %v", out, err)
	}
	first.set("x", "k", "newest")
	obj, err := second.Rewrite(t.Context(), req, objects.Place{Resource: req.Resource, Namespace: "a", Name: "x"}, func(kinds.Object) error { return nil })
	if err != nil || obj.(*corev1.ConfigMap).Data["k"] != "newest" {
		t.Errorf("a rewrite shows %+v, %v", obj, err)
	}
}

// TestRewriteBehind: a binding is not refused because of an object that another server has changed since.
func TestRewriteBehind(t *testing.T) {
	first, second := twoDesks(t)
	first.create(configMap("x", map[string]string{"protected": "yes"}))
	second.knows()
	first.set("x", "protected", "")
	req := second.request("update", "configmaps", "", "x")
	refused := 0
	_, err := second.Rewrite(t.Context(), req, objects.Place{Resource: req.Resource, Namespace: "a", Name: "x"}, func(obj kinds.Object) error {
		if obj.(*corev1.ConfigMap).Data["protected"] != "" {
			refused++
			return apierrors.NewConflict(req.Resource.GroupResource(), "x", errors.New("it is protected"))
		}
		return nil
	})
	if err != nil || refused != 1 {
		t.Errorf("%v, refused %d times", err, refused)
	}
}

// TestLabelBehind: a field that needs a label on the namespace is allowed by the label that another server has written last.
func TestLabelBehind(t *testing.T) {
	first, second := twoDesks(t)
	second.catalogue.Lookup("", "v1", "configmaps").Storage.NeedsLabel = func(kinds.Object, kinds.Object) (*field.Path, string, string) {
		return field.NewPath("data"), "may", "needs a label"
	}
	key := sqlstore.Key{Resource: "namespaces", Name: "a"}
	revision := int64(0)
	for i, may := range []string{"true", "false", "true", "false"} {
		op := sqlstore.Op{Verb: sqlstore.Update, Key: key, Expect: revision, Value: fmt.Appendf(nil, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","uid":"u","labels":{"may":%q}}}`, may)}
		if i == 0 {
			op.Verb = sqlstore.Create
		}
		out, err := first.store.Write(t.Context(), op)
		if err != nil {
			t.Fatal(err)
		}
		revision = out.Revisions[0]
		_, err = second.Create(t.Context(), second.request("create", "configmaps", "", ""), configMap(fmt.Sprint("x", i), nil))
		if may == "true" && err != nil || may == "false" && !apierrors.IsInvalid(err) {
			t.Errorf("with the label %q: %v", may, err)
		}
	}
}

// TestListOfFormerNamespaceBehind: a server that learns during an exact list that the namespace was recreated after that revision
// refuses the list.
func TestListOfFormerNamespaceBehind(t *testing.T) {
	first, second := twoDesks(t)
	key, value := sqlstore.Key{Resource: "namespaces", Name: "a"}, []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","uid":"u"}}`)
	write := func(op sqlstore.Op) int64 {
		t.Helper()
		op.Key, op.Value = key, value
		out, err := first.store.Write(t.Context(), op)
		if err != nil {
			t.Fatal(err)
		}
		return out.Revisions[0]
	}
	made := write(sqlstore.Op{Verb: sqlstore.Create})
	second.knows()
	of := first.create(configMap("x", map[string]string{"k": "secret"})).Item.Revision
	list := func() (*objects.Page, error) {
		o := &objects.ListOptions{Namespace: "a"}
		o.ResourceVersion, o.ResourceVersionMatch = fmt.Sprint(of), metav1.ResourceVersionMatchExact
		o.ReadRevision()
		r := second.catalogue.Lookup("", "v1", "configmaps")
		return second.Objects.List(t.Context(), second.permit("list", r, "", ""), r, o)
	}
	write(sqlstore.Op{Verb: sqlstore.Delete, Expect: made})
	write(sqlstore.Op{Verb: sqlstore.Create})
	if p, err := list(); !apierrors.IsResourceExpired(err) {
		t.Errorf("the list is %+v, %v", p, err)
	}
}
