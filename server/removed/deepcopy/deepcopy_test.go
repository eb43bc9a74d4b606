package deepcopy_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/k8s.io/api/resource/v1alpha3"
)

const (
	meta = `"metadata":{"name":"n","labels":{"a":"b"},"creationTimestamp":"2026-01-02T03:04:05Z","ownerReferences":[{"name":"o","controller":true}],` +
		`"managedFields":[{"manager":"m","time":"2026-01-02T03:04:05Z","fieldsV1":{"f:spec":{}}}]}`
	// The second quantity is too precise for 64 bits.
	slice = `{` + meta + `,"spec":{"driver":"d","pool":{"name":"p"},"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"k","values":["v"]}]}]},"devices":[` +
		`{"name":"x","basic":{"attributes":{"a":{"int":7,"bool":true,"string":"s","version":"1.2.3"}},"capacity":{"c":"1Gi","d":"123456789012345678901234567890n"}}},{"name":"y"}]}}`
	claim = `{` + meta + `,"spec":{"devices":{"requests":[{"name":"r","selectors":[{"cel":{"expression":"true"}}],"adminAccess":false}],` +
		`"config":[{"requests":["r"],"opaque":{"driver":"d","parameters":{"p":[1]}}}]}},"status":{"devices":[{"data":{"a":"b"},` +
		`"conditions":[{"type":"t","lastTransitionTime":"2026-01-02T03:04:05Z"}],"networkData":{"ips":[]}}]}}`
)

// TestObject: a copy is equal to its object, also where lists are empty or absent, and a change of either does not reach the other.
func TestObject(t *testing.T) {
	withObject := &v1alpha3.ResourceClaim{Status: v1alpha3.ResourceClaimStatus{Devices: []v1alpha3.AllocatedDeviceStatus{
		{Data: &runtime.RawExtension{Object: &metav1.Status{Details: &metav1.StatusDetails{Name: "n"}}}},
	}}}
	objects := []runtime.Object{withObject}
	for text, obj := range map[string]runtime.Object{
		slice: &v1alpha3.ResourceSlice{}, claim: &v1alpha3.ResourceClaim{}, `{"items":[` + claim + `]}`: &v1alpha3.ResourceClaimList{},
	} {
		if err := json.Unmarshal([]byte(text), obj); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, obj)
	}
	for _, obj := range objects {
		again := obj.DeepCopyObject()
		if diff := cmp.Diff(obj, again); diff != "" {
			t.Errorf("%T: %s", obj, diff)
		}
		apart(t, reflect.TypeOf(obj).String(), reflect.ValueOf(obj), reflect.ValueOf(again))
	}
	if (*v1alpha3.ResourceClaim)(nil).DeepCopyObject() != nil {
		t.Error("a copy of nothing")
	}
}

// apart checks that two equal values share no memory but that of texts and of the location of times.
func apart(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if a.IsNil() || a.Kind() != reflect.Pointer && a.Len() == 0 {
			return
		}
		if a.Pointer() == b.Pointer() && a.Type().String() != "*time.Location" {
			t.Errorf("%s is shared", path)
			return
		}
	case reflect.Interface:
		if a.IsNil() {
			return
		}
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.Type().String() != "*time.Location" {
			apart(t, path, a.Elem(), b.Elem())
		}
	case reflect.Slice:
		for i := range a.Len() {
			apart(t, path, a.Index(i), b.Index(i))
		}
	case reflect.Map:
		for _, key := range a.MapKeys() {
			apart(t, path, a.MapIndex(key), b.MapIndex(key))
		}
	case reflect.Struct:
		for i := range a.NumField() {
			apart(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	}
}
