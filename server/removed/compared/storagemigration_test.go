// Package compared_test compares types that were removed with those of the release that this module
// is built with. It stands apart: "go mod tidy" in a program that requires a newer release looks at
// the tests of each package that the program needs, too.
package compared_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	upstream "k8s.io/api/storagemigration/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
)

type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
	Unmarshal([]byte) error
	Marshal() ([]byte, error)
}

func encoded(t *testing.T, m message) []byte {
	t.Helper()
	data := make([]byte, m.Size()+3) // the message goes to the end
	n, err := m.MarshalToSizedBuffer(data)
	if err != nil || n != m.Size() {
		t.Fatalf("%T: %d bytes of %d, %v", m, n, m.Size(), err)
	}
	if all, err := m.Marshal(); err != nil || !bytes.Equal(all, data[3:]) {
		t.Fatalf("%T marshals into %x, and %x in a buffer, %v", m, all, data[3:], err)
	}
	return data[3:]
}

// The types of the release that the module itself is built with are those that were copied.
func TestEqualsUpstream(t *testing.T) {
	at := metav1.NewTime(time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC))
	meta := metav1.ObjectMeta{Name: "m", Labels: map[string]string{"a": "b"}, CreationTimestamp: at, Finalizers: []string{"x/y"}}
	for name, want := range map[string]upstream.StorageVersionMigration{
		"empty": {},
		"full": {
			ObjectMeta: meta,
			Spec: upstream.StorageVersionMigrationSpec{
				Resource:      upstream.GroupVersionResource{Group: "g", Version: "v", Resource: "r"},
				ContinueToken: string(bytes.Repeat([]byte("t"), 300)),
			},
			Status: upstream.StorageVersionMigrationStatus{
				Conditions: []upstream.MigrationCondition{
					{Type: upstream.MigrationRunning, Status: "False", LastUpdateTime: at, Reason: "R", Message: "said"},
					{},
					{Type: upstream.MigrationSucceeded, Status: "True", LastUpdateTime: at},
				},
				ResourceVersion: "17",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got v1alpha1.StorageVersionMigration
			text, err := json.Marshal(&want)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if again, err := json.Marshal(&got); err != nil || !bytes.Equal(text, again) {
				t.Errorf("JSON is %s, upstream %s, %v", again, text, err)
			}
			compare(t, &got, &want)
			compare(t, &v1alpha1.StorageVersionMigrationList{ListMeta: metav1.ListMeta{ResourceVersion: "3"}, Items: []v1alpha1.StorageVersionMigration{got, {}, got}},
				&upstream.StorageVersionMigrationList{ListMeta: metav1.ListMeta{ResourceVersion: "3"}, Items: []upstream.StorageVersionMigration{want, {}, want}})
			copied := got.DeepCopyObject().(*v1alpha1.StorageVersionMigration)
			if diff := cmp.Diff(&got, copied); diff != "" {
				t.Error(diff)
			}
			for i := range copied.Status.Conditions {
				copied.Status.Conditions[i].Message = "other"
			}
			copied.SetLabels(nil)
			if again, err := json.Marshal(&got); err != nil || !bytes.Equal(text, again) {
				t.Errorf("a change of the copy changed the original into %s, %v", again, err)
			}
		})
	}
}

// compare compares both directions of the Protobuf form, of what is cut off too.
func compare(t *testing.T, got, want message) {
	t.Helper()
	data := encoded(t, want)
	if mine := encoded(t, got); !bytes.Equal(mine, data) {
		t.Errorf("%T as Protobuf is %x, upstream %x", got, mine, data)
	}
	if asJSON(t, got) != asJSON(t, want) {
		t.Errorf("%T reads as %s, upstream %s", got, asJSON(t, got), asJSON(t, want))
	}
	unknown := append(bytes.Clone(data), 0x98, 0x06, 0x01, 0xfa, 0x01, 0x02, 'a', 'b') // fields 99 and 31
	for n, cut := range [][]byte{data, unknown, {0x08, 0x01}, {0x0a}, {0x00, 0x00}, {0x0c}, data[:len(data)/2], data[:len(data)/3]} {
		mine := reflect.New(reflect.TypeOf(got).Elem()).Interface().(message)
		theirs := reflect.New(reflect.TypeOf(want).Elem()).Interface().(message)
		err, wantErr := mine.Unmarshal(cut), theirs.Unmarshal(cut)
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%T of input %d: %v, upstream %v", got, n, err, wantErr)
		}
		if err == nil && wantErr == nil && asJSON(t, mine) != asJSON(t, theirs) {
			t.Errorf("%T of input %d is %s, upstream %s", got, n, asJSON(t, mine), asJSON(t, theirs))
		}
	}
}

func asJSON(t *testing.T, m message) string {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The texts that the OpenAPI documents and the columns have.
func TestDescriptions(t *testing.T) {
	type described interface{ SwaggerDoc() map[string]string }
	for _, pair := range [][2]described{
		{v1alpha1.StorageVersionMigration{}, upstream.StorageVersionMigration{}},
		{v1alpha1.StorageVersionMigrationList{}, upstream.StorageVersionMigrationList{}},
		{v1alpha1.StorageVersionMigrationSpec{}, upstream.StorageVersionMigrationSpec{}},
		{v1alpha1.StorageVersionMigrationStatus{}, upstream.StorageVersionMigrationStatus{}},
		{v1alpha1.MigrationCondition{}, upstream.MigrationCondition{}},
		{v1alpha1.GroupVersionResource{}, upstream.GroupVersionResource{}},
	} {
		if diff := cmp.Diff(pair[1].SwaggerDoc(), pair[0].SwaggerDoc()); diff != "" {
			t.Errorf("%T: %s", pair[0], diff)
		}
		got, want := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		for i := range want.NumField() {
			if g, w := got.Field(i), want.Field(i); g.Name != w.Name || g.Tag != w.Tag || g.Type.Kind() != w.Type.Kind() {
				t.Errorf("%v: field %v %v, upstream %v %v", got, g.Name, g.Tag, w.Name, w.Tag)
			}
		}
	}
}
