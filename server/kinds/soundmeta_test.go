package kinds_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
)

// These tests are no part of the package: all that depends on it would be compiled once more
// for them, nearly the whole server, since others here start one.

// TestUsualMetaIsSound: what clients send all day needs no library, which would make a path for
// each field.
func TestUsualMetaIsSound(t *testing.T) {
	yes := true
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "a.b-c", Namespace: "default", UID: "u", ResourceVersion: "7", Generation: 2, GenerateName: "a-", CreationTimestamp: metav1.Unix(7, 0),
		Labels:          map[string]string{"app.kubernetes.io/name": "Web_1.0", "tier": ""},
		Annotations:     map[string]string{"Example.com/Note": "anything at all", "plain": "\x00"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "1", Controller: &yes}, {APIVersion: "v1", Kind: "Pod", Name: "p", UID: "2"}},
		Finalizers:      []string{"example.com/hold"},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1"}},
	}}
	r := &kinds.Resource{Namespaced: true, Storage: &kinds.Storage{}}
	old := obj.DeepCopy()
	for what, validate := range map[string]func() field.ErrorList{
		"a create": func() field.ErrorList { return r.ValidateNewMeta(nil, obj) },
		"a change": func() field.ErrorList { return r.ValidateMeta(nil, obj, old) },
	} {
		if errs := validate(); len(errs) > 0 {
			t.Errorf("usual metadata of %s has faults: %v", what, errs)
		}
		if n := testing.AllocsPerRun(100, func() { validate() }); n > 0 {
			t.Errorf("usual metadata of %s costs %v allocations", what, n)
		}
	}
}

// faults are those that the library finds in metadata, and in a change of it if there is an old
// object, with the names of finalizers that are neither qualified nor standard.
func faults(r *kinds.Resource, rules *kinds.MetaRules, obj, old *corev1.ConfigMap) field.ErrorList {
	at, dns, wholes := field.NewPath("metadata"), validation.NameIsDNSSubdomain, 1
	var errs field.ErrorList
	if old != nil {
		wholes = rules.Wholes
		errs = validation.ValidateObjectMetaAccessor(obj, r.Namespaced, func(name string, prefix bool) []string {
			if prefix {
				return path.IsValidPathSegmentPrefix(name)
			}
			return path.IsValidPathSegmentName(name)
		}, at)
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, at)...)
	}
	if wholes > 0 {
		errs = append(errs, validation.ValidateObjectMetaAccessor(obj, r.Namespaced, dns, at)...)
	}
	for _, f := range obj.Finalizers {
		if !rules.AnyFinalizer && !strings.Contains(f, "/") && f != "kubernetes" && f != "orphan" && f != "foregroundDeletion" {
			errs = append(errs, field.Invalid(at, f, "no finalizer"))
		}
	}
	return errs
}

// TestSoundMetaHasNoFaults: whatever is let pass without the library would pass there as well.
func TestSoundMetaHasNoFaults(t *testing.T) {
	words := []string{"", "a", "A", "-", ".", "_", "/", "a/b", "a.b/c", "A.b/C", "a..b/c", "a.-b/c", "a-.b/c", "-a/b", "a/", "/a", "a/b/c", "é", "a b", "%", "..", "a_b", "a_b/c", "K/a", "0", "a.b.c",
		strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 63) + "." + strings.Repeat("y", 100), strings.Repeat("z", 253) + "/a", strings.Repeat("z", 254) + "/a", "v1", "apps/v1", "Event", "orphan", "foregroundDeletion", "kubernetes",
		"Apply", "Update", "FieldsV1", strings.Repeat("m", 129), strings.Repeat("m", 257), "tab\t", "\u0085"}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	word := func() string { return words[rnd.IntN(len(words))] }
	seldom := func(usual string) string {
		if rnd.IntN(8) > 0 {
			return usual
		}
		return word()
	}
	pairs := func() map[string]string {
		m := map[string]string{}
		for range rnd.IntN(3) {
			m[seldom("a.b/c")] = seldom("d")
		}
		if rnd.IntN(200) == 0 {
			m["big"] = strings.Repeat("x", 256<<10)
		}
		return m
	}
	object := func() *corev1.ConfigMap {
		m := metav1.ObjectMeta{
			Name: seldom("n"), Namespace: seldom("default"), GenerateName: seldom(""), UID: types.UID(seldom("u")), ResourceVersion: seldom("1"),
			Generation: int64(rnd.IntN(20) - 1), CreationTimestamp: metav1.Unix(int64(rnd.IntN(20)/19), 0), Labels: pairs(), Annotations: pairs(),
		}
		for range rnd.IntN(3) {
			yes := rnd.IntN(2) == 0
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: seldom("apps/v1"), Kind: seldom("Pod"), Name: seldom("p"), UID: types.UID(seldom("u")), Controller: &yes})
		}
		for range rnd.IntN(3) {
			m.Finalizers = append(m.Finalizers, seldom("a.b/c"))
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: seldom("kubelet"), Operation: metav1.ManagedFieldsOperationType(seldom("Update")), FieldsType: seldom("FieldsV1"), Subresource: seldom("")})
		}
		if rnd.IntN(10) == 0 {
			when, grace := metav1.Unix(int64(rnd.IntN(2)), 0), int64(rnd.IntN(2))
			m.DeletionTimestamp, m.DeletionGracePeriodSeconds = &when, &grace
		}
		return &corev1.ConfigMap{ObjectMeta: m}
	}
	quick := 0
	for range 3_000 {
		rules := &kinds.MetaRules{Updates: 1, Wholes: rnd.IntN(2), AnyFinalizer: rnd.IntN(2) == 0}
		r := &kinds.Resource{Namespaced: rnd.IntN(4) > 0, Storage: &kinds.Storage{Strategy: kinds.Strategy{Meta: rules}}}
		obj := object()
		if !r.Namespaced && rnd.IntN(2) == 0 {
			obj.Namespace = ""
		}
		old := obj.DeepCopy()
		if rnd.IntN(2) == 0 {
			old = object()
		}
		if len(r.ValidateMeta(nil, obj, old)) == 0 {
			quick++
			if errs := faults(r, rules, obj, old); len(errs) > 0 {
				t.Fatalf("seed %d: %+v after %+v has faults: %v", seed, obj.ObjectMeta, old.ObjectMeta, errs)
			}
		}
		if len(r.ValidateNewMeta(nil, obj)) == 0 {
			if errs := faults(r, rules, obj, nil); len(errs) > 0 {
				t.Fatalf("seed %d: %+v has faults: %v", seed, obj.ObjectMeta, errs)
			}
		}
	}
	if quick < 100 {
		t.Errorf("only %d of 3,000 objects were sound", quick)
	}
}
