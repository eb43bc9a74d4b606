package protobuf

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// List reads a list of any kind in its envelope: in every one the first field is the metadata, and
// the second holds the items. newItem makes an empty item.
func List(data []byte, newItem func() runtime.Object) (metadata metav1.ListMeta, items []runtime.Object, err error) {
	env, err := open(data)
	if err != nil {
		return metadata, nil, err
	}
	items = []runtime.Object{}
	eachField(env.raw, func(number uint64, field []byte, _ bool) {
		switch {
		case err != nil:
		case number == 1:
			err = metadata.Unmarshal(field)
		case number == 2:
			item, ok := newItem().(interface {
				runtime.Object
				message
			})
			if !ok {
				err = fmt.Errorf("the items of a %s have no Protobuf form", env.kind)
				return
			}
			err = item.Unmarshal(field)
			items = append(items, item)
		}
	})
	return metadata, items, err
}
