package protobuf

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
)

// List reads a list of any kind in its envelope: in every one the first field is the metadata, and
// the second holds the items. newItem makes an empty item, and take gets each in its turn, until it fails: many short
// items take far more memory as objects than as bytes, so only one of them is an object at a time.
func List(data []byte, newItem func() runtime.Object, take func(runtime.Object) error) (metadata metav1.ListMeta, err error) {
	env, err := open(data)
	if err != nil {
		return metadata, err
	}
	eachField(env.raw, func(number uint64, field []byte, _, _ bool) {
		switch {
		case err != nil:
		case number == 1:
			err = metadata.Unmarshal(field)
		case number == 2:
			item := newItem()
			if err = tagged.Unmarshal(field, item); err == nil {
				err = take(item)
			}
		}
	})
	return metadata, err
}
