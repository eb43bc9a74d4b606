package protobuf_test

import (
	"bytes"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	stock "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/sample"
)

// TestListInTurn: the items of a list become objects one after the other, and none does after take has failed.
func TestListInTurn(t *testing.T) {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, name := range []string{"a", "b", "c"} {
		list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	var data bytes.Buffer
	if err := stock.NewSerializer(sample.Scheme(), sample.Scheme()).Encode(list, &data); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	for last, want := range map[string]struct {
		err   error
		items int
	}{"b": {enough, 2}, "": {nil, 3}} {
		made, taken := 0, 0
		newItem := func() runtime.Object { made++; return &corev1.ConfigMap{} }
		metadata, err := protobuf.List(data.Bytes(), newItem, func(obj runtime.Object) error {
			taken++
			if made != taken || obj.(*corev1.ConfigMap).Name != list.Items[taken-1].Name {
				t.Errorf("item %d of %d: %v", taken, made, obj)
			}
			if obj.(*corev1.ConfigMap).Name == last {
				return enough
			}
			return nil
		})
		if !errors.Is(err, want.err) || made != want.items || metadata.ResourceVersion != "7" {
			t.Errorf("until %q: %d items, %v, %v", last, made, metadata, err)
		}
	}
}
