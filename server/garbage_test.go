package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// collecting is an option: the garbage collector runs, and leaves nothing alone first.
func collecting(c *server.Config) {
	c.Controllers.Runs = func(name string) bool { return name == "garbagecollector" || name == "customresourcedefinitions" }
	c.Controllers.Named, c.Controllers.NeverStandby = c.Controllers.Runs, true
}

// yard is a server that collects garbage, and ConfigMaps that own one another.
type yard struct {
	*servertest.Server
	t *testing.T
}

func newYard(t *testing.T, options ...func(*server.Config)) *yard {
	y := &yard{servertest.Start(t, append([]func(*server.Config){collecting}, options...)...), t}
	y.make("v1", "Namespace", "", "yard")
	y.make("v1", "Namespace", "", "other")
	return y
}

func (y *yard) call(method, path string, body, into any) error {
	contentType := "application/json"
	if method == "PATCH" {
		contentType = "application/merge-patch+json"
	}
	return y.Server.Call(context.Background(), "test", method, path, contentType, body, into)
}

var plurals = map[string]string{"Namespace": "namespaces", "ConfigMap": "configmaps", "Secret": "secrets", "ClusterRole": "clusterroles", "Toy": "toys"}

func pathOf(apiVersion, kind, namespace, name string) string {
	path := "/apis/" + apiVersion
	if apiVersion == "v1" {
		path = "/api/v1"
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	if path += "/" + plurals[kind]; name != "" {
		path += "/" + name
	}
	return path
}

// make creates an object, with finalizers and references to owners, and returns a reference to it.
func (y *yard) make(apiVersion, kind, namespace, name string, more ...any) metav1.OwnerReference {
	y.t.Helper()
	obj := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	for _, one := range more {
		switch one := one.(type) {
		case string:
			obj.Finalizers = append(obj.Finalizers, one)
		case metav1.OwnerReference:
			obj.OwnerReferences = append(obj.OwnerReferences, one)
		}
	}
	var made metav1.PartialObjectMetadata
	if err := y.call("POST", pathOf(apiVersion, kind, namespace, ""), &obj, &made); err != nil {
		y.t.Fatal(err)
	}
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: made.UID}
}

// config makes a ConfigMap.
func (y *yard) config(name string, more ...any) metav1.OwnerReference {
	y.t.Helper()
	return y.make("v1", "ConfigMap", "yard", name, more...)
}

func blocking(r metav1.OwnerReference) metav1.OwnerReference {
	r.BlockOwnerDeletion = new(true)
	return r
}

func (y *yard) delete(r metav1.OwnerReference, namespace, how string) {
	y.t.Helper()
	if err := y.call("DELETE", pathOf(r.APIVersion, r.Kind, namespace, r.Name)+"?propagationPolicy="+how, nil, nil); err != nil {
		y.t.Fatal(err)
	}
}

// get reads a ConfigMap; nil if it is not there.
func (y *yard) get(name string) *corev1.ConfigMap {
	y.t.Helper()
	var obj corev1.ConfigMap
	if err := y.call("GET", pathOf("v1", "ConfigMap", "yard", name), nil, &obj); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		y.t.Fatal(err)
	}
	return &obj
}

// eventually waits until exactly these ConfigMaps exist. The names of an object's owners may follow
// after a colon.
func (y *yard) eventually(want ...string) {
	y.t.Helper()
	slices.Sort(want)
	var got []string
	defer func() {
		if y.t.Failed() {
			y.t.Errorf("there are %q, want %q", got, want)
		}
	}()
	servertest.Eventually(y.t, func() bool {
		got = y.configs()
		return slices.Equal(got, want)
	})
}

func (y *yard) configs() (list []string) {
	y.t.Helper()
	var all corev1.ConfigMapList
	if err := y.call("GET", pathOf("v1", "ConfigMap", "yard", ""), nil, &all); err != nil {
		y.t.Fatal(err)
	}
	for i := range all.Items {
		text := all.Items[i].Name
		if text == "kube-root-ca.crt" {
			continue
		}
		for n, r := range all.Items[i].OwnerReferences {
			text += map[bool]string{true: ":", false: ","}[n == 0] + r.Name
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

func TestCollectsInTheBackground(t *testing.T) {
	y := newYard(t)
	a := y.config("a")
	b := y.config("b", a)
	y.config("c", b)
	other := y.config("other")
	y.config("both", a, other)
	y.config("absent", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "no such object"})
	y.config("misnamed", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: a.UID})
	y.eventually("a", "b:a", "c:b", "other", "both:a,other")
	y.delete(a, "yard", "Background")
	y.eventually("other", "both:other")
	y.delete(other, "yard", "Background")
	y.eventually()
}

func TestCollectsInTheForeground(t *testing.T) {
	y := newYard(t)
	a := y.config("a")
	b := y.config("b", blocking(a))
	held := y.config("held", "example.com/hold", blocking(b))
	y.config("beside", a)
	y.config("kept", blocking(a), y.config("keeper"))
	y.delete(a, "yard", "Foreground")
	y.eventually("a", "b:a", "held:b", "keeper", "kept:keeper")
	// The order of lost owners and of deletions is arbitrary.
	for _, name := range []string{"a", "b"} {
		servertest.Eventually(t, func() bool {
			obj := y.get(name)
			return obj != nil && obj.DeletionTimestamp != nil && slices.Contains(obj.Finalizers, metav1.FinalizerDeleteDependents)
		})
	}
	servertest.Eventually(t, func() bool {
		obj := y.get("held")
		return obj != nil && obj.DeletionTimestamp != nil && len(obj.Finalizers) == 1
	})
	if err := y.call("PATCH", pathOf("v1", "ConfigMap", "yard", held.Name), map[string]any{"metadata": map[string]any{"finalizers": nil}}, nil); err != nil {
		t.Fatal(err)
	}
	y.eventually("keeper", "kept:keeper")
}

func TestOrphans(t *testing.T) {
	y := newYard(t)
	a, other := y.config("a"), y.config("other")
	b := y.config("b", blocking(a))
	y.config("c", a, other)
	y.config("d", b)
	y.delete(a, "yard", "Orphan")
	y.eventually("b", "c:other", "d:b", "other")
	y.delete(other, "yard", "Background")
	y.eventually("b", "d:b")
}

// Circles go, from wherever they are deleted.
func TestCircles(t *testing.T) {
	y := newYard(t)
	for _, how := range []string{"Foreground", "Background"} {
		for size := 1; size <= 4; size++ {
			var refs []metav1.OwnerReference
			for i := range size {
				refs = append(refs, y.config(fmt.Sprint(strings.ToLower(how), size, "-", i)))
			}
			for i := range size {
				body := map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{blocking(refs[(i+1)%size])}}}
				if err := y.call("PATCH", pathOf("v1", "ConfigMap", "yard", refs[i].Name), body, nil); err != nil {
					t.Fatal(err)
				}
			}
			y.delete(refs[0], "yard", how)
			y.eventually()
		}
	}
}

// References lead to objects of the same namespace or of the cluster, and of kinds that are
// known.
func TestWhereOwnersMayBe(t *testing.T) {
	y := newYard(t)
	role := y.make("rbac.authorization.k8s.io/v1", "ClusterRole", "", "owner")
	far := y.make("v1", "ConfigMap", "other", "far")
	near := y.config("near")
	y.config("by-role", role)
	y.config("by-far", far)
	y.config("unknown", metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Unknown", Name: "x", UID: "x"})
	y.config("partly", metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Unknown", Name: "x", UID: "x"}, far)
	y.make("rbac.authorization.k8s.io/v1", "ClusterRole", "", "dependent", near)
	y.eventually("near", "by-role:owner", "unknown:x", "partly:x,far")
	y.delete(role, "", "Background")
	y.delete(near, "yard", "Background")
	y.eventually("unknown:x", "partly:x,far")
	if err := y.call("GET", pathOf("rbac.authorization.k8s.io/v1", "ClusterRole", "", "dependent"), nil, nil); err != nil {
		t.Error("an object of the cluster cannot have an owner in a namespace, and stays:", err)
	}
}

// events returns the messages of events about references into other namespaces.
func (y *yard) events(namespace string) (list []string) {
	y.t.Helper()
	var all corev1.EventList
	if err := y.call("GET", "/api/v1/namespaces/"+namespace+"/events", nil, &all); err != nil {
		y.t.Fatal(err)
	}
	for i := range all.Items {
		e := &all.Items[i]
		list = append(list, fmt.Sprintf("%s %s %s/%s %s %s %s: %s", e.Type, e.Reason, e.InvolvedObject.APIVersion, e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Source.Component, e.Message))
	}
	slices.Sort(list)
	return list
}

func TestOwnersInOtherNamespacesAreReported(t *testing.T) {
	y := newYard(t)
	far := y.make("v1", "ConfigMap", "other", "far")
	near := y.config("near")
	y.config("child", far)
	y.config("half", near, far)
	y.make("rbac.authorization.k8s.io/v1", "ClusterRole", "", "dependent", far)
	y.config("none", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "far", UID: "another"})
	message := func(kind, namespace, name string) string {
		return fmt.Sprintf("Warning OwnerRefInvalidNamespace %s %s %s garbage-collector-controller: ownerRef [v1/ConfigMap, namespace: %s, name: far, uid: %s] does not exist in namespace %q",
			kind, namespace, name, namespace, far.UID, namespace)
	}
	want := []string{message("v1/ConfigMap", "yard", "child"), message("v1/ConfigMap", "yard", "half")}
	y.eventually("near", "half:near")
	servertest.Eventually(t, func() bool { return slices.Equal(y.events("yard"), want) })
	want = []string{message("rbac.authorization.k8s.io/v1/ClusterRole", "", "dependent")}
	servertest.Eventually(t, func() bool { return slices.Equal(y.events("default"), want) })
}

// TestOwnersWaitForWhatTheyOwnAlone: an object that cannot be a dependent, by its namespace or because it has none, blocks
// no deletion in the foreground, delays no orphaning, and keeps its references.
func TestOwnersWaitForWhatTheyOwnAlone(t *testing.T) {
	for _, policy := range []string{"Foreground", "Orphan"} {
		t.Run(policy, func(t *testing.T) {
			y := newYard(t)
			owner := y.config("owner")
			blocked := blocking(owner)
			y.make("rbac.authorization.k8s.io/v1", "ClusterRole", "", "of-nobody", blocked)
			near := y.make("v1", "ConfigMap", "other", "near")
			y.make("v1", "ConfigMap", "other", "elsewhere", blocked, near)
			y.delete(owner, "yard", policy)
			y.eventually()
			var role metav1.PartialObjectMetadata
			if err := y.call("GET", pathOf("rbac.authorization.k8s.io/v1", "ClusterRole", "", "of-nobody"), nil, &role); err != nil || len(role.OwnerReferences) != 1 {
				t.Errorf("the cluster role has %+v, %v", role.OwnerReferences, err)
			}
		})
	}
}

const toys = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"toys.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
"names":{"plural":"toys","kind":"Toy"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// define makes custom resources known.
func (y *yard) define() {
	y.t.Helper()
	y.Must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", toys)
	servertest.Eventually(y.t, func() bool {
		return y.call("GET", pathOf("example.com/v1", "Toy", "yard", ""), nil, nil) == nil
	})
}

func (y *yard) undefine() {
	y.t.Helper()
	y.Must("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.example.com", "")
	servertest.Eventually(y.t, func() bool {
		return y.Do("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.example.com", "").Code == 404
	})
}

// Custom resources come and go while the collector runs, own others and are owned.
func TestCollectsCustomResources(t *testing.T) {
	y := newYard(t)
	for range 3 {
		a := y.config("a")
		y.config("early", metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Toy", Name: "never", UID: "never"})
		y.define() // now it is known that there is no such toy
		y.eventually("a")
		toy := y.make("example.com/v1", "Toy", "yard", "toy", a)
		y.config("of-toy", toy)
		y.config("of-version", metav1.OwnerReference{APIVersion: "example.com/v2", Kind: "Toy", Name: "toy", UID: toy.UID})
		other := y.make("example.com/v1", "Toy", "yard", "other")
		y.config("of-other", other)
		y.delete(a, "yard", "Background")
		y.eventually("of-version:toy", "of-other:other")
		y.undefine()
		y.eventually("of-version:toy")
		y.delete(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "of-version"}, "yard", "Background")
	}
}

// Refused deletions are tried again, and no request waits for them.
func TestRefusedDeletionsAreTriedAgain(t *testing.T) {
	y := newYard(t)
	a := y.config("a")
	y.Must("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", `{"metadata":{"name":"keep"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["DELETE"]}]},
		"validations":[{"expression":"oldObject.metadata.name != 'kept'"}]}}`)
	y.Must("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", `{"metadata":{"name":"keep"},"spec":{"policyName":"keep","validationActions":["Deny"]}}`)
	y.config("kept", blocking(a))
	servertest.Eventually(t, func() bool { return y.Do("DELETE", pathOf("v1", "ConfigMap", "yard", "kept"), "").Code == 422 })
	for i := range 50 {
		y.config(fmt.Sprint("b", i), a)
	}
	y.delete(a, "yard", "Foreground")
	y.eventually("a", "kept:a")
	y.Must("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/keep", "")
	y.eventually()
}

// Long chains, and objects with many owners, are collected like others, and delay none.
func TestCollectsMany(t *testing.T) {
	y := newYard(t)
	first := y.config("chain")
	last := first
	for i := range 200 {
		last = y.config(fmt.Sprint("chain-", i), last)
	}
	var absent []any
	for i := range 3000 {
		absent = append(absent, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint("absent-", i), UID: types.UID(fmt.Sprint("absent-", i))})
	}
	y.config("many", absent...)
	y.config("almost", append(absent, first)...)
	y.delete(first, "yard", "Background")
	y.eventually()
}

// Objects that are not served for a while are there: nothing goes with them, and what they
// own or wait for is as it was when they are served again.
func TestOwnersThatAreNotServed(t *testing.T) {
	y := newYard(t)
	y.define()
	owner := y.make("example.com/v1", "Toy", "yard", "owner")
	y.config("of-toy", owner)
	parent := y.config("parent")
	y.make("example.com/v1", "Toy", "yard", "child", blocking(parent))
	y.config("last")
	y.eventually("of-toy:owner", "parent", "last")
	// The deletion of a Toy without its owner shows that the collector has seen the others.
	absent := parent
	absent.UID = "absent"
	y.make("example.com/v1", "Toy", "yard", "astray", absent)
	servertest.Eventually(t, func() bool { return y.Do("GET", pathOf("example.com/v1", "Toy", "yard", "astray"), "").Code == 404 })
	serve := func(served bool) {
		t.Helper()
		body := []map[string]any{{"op": "replace", "path": "/spec/versions/0/served", "value": served}}
		if err := y.Server.Call(t.Context(), "test", "PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.example.com", "application/json-patch+json", body, nil); err != nil {
			t.Fatal(err)
		}
		servertest.Eventually(t, func() bool {
			return (y.Do("GET", pathOf("example.com/v1", "Toy", "yard", ""), "").Code == 200) == served
		})
	}
	for round := range 2 {
		serve(false)
		// A deletion while the other end of a reference is invisible shows that the collector has
		// seen the rest too.
		gone := y.config(fmt.Sprint("gone", round))
		y.config(fmt.Sprint("with", round), gone)
		if round == 1 {
			y.delete(parent, "yard", "Orphan")
		}
		y.delete(gone, "yard", "Background")
		servertest.Eventually(t, func() bool { return !slices.Contains(y.configs(), fmt.Sprintf("with%d:gone%d", round, round)) })
		if got := y.configs(); !slices.Contains(got, "of-toy:owner") {
			t.Fatalf("while toys are not served there are %q", got)
		}
		serve(true)
		if err := y.call("GET", pathOf("example.com/v1", "Toy", "yard", "child"), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	y.eventually("of-toy:owner", "last")
	var child metav1.PartialObjectMetadata
	if err := y.call("GET", pathOf("example.com/v1", "Toy", "yard", "child"), nil, &child); err != nil || len(child.OwnerReferences) > 0 {
		t.Errorf("an orphan is %v, %v", child.OwnerReferences, err)
	}
	y.delete(owner, "yard", "Background")
	y.eventually("last")
}
