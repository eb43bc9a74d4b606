package verbs

import (
	"context"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// convertAtOnce is how many objects are converted together.
const convertAtOnce = 500

// convertPage makes the forms of the items of a page that are not as they are stored,
// so that many are converted at once, and nothing can fail when the answer has begun.
func (v *view) convertPage(ctx context.Context, p *page) error {
	if !v.r.Custom {
		return nil
	}
	key := v.customKey()
	var waiting []*cache.Item
	for i, it := range p.items {
		if !clean(v.r, it) && !it.Has(key) {
			waiting = append(waiting, it)
		}
		if len(waiting) == convertAtOnce || i == len(p.items)-1 && len(waiting) > 0 {
			if err := v.convertItems(ctx, waiting); err != nil {
				return err
			}
			waiting = waiting[:0]
		}
	}
	return nil
}

func (v *view) customKey() cache.FormKey { return cache.FormKey{Form: cache.FormJSON, For: v.r} }

func (v *view) convertItems(ctx context.Context, items []*cache.Item) error {
	objs := make([]kinds.Object, len(items))
	for i, it := range items {
		var err error
		if objs[i], err = v.h.decoded(v.r, it); err != nil {
			return err
		}
	}
	objs, err := v.r.Schema.FromStore(ctx, objs...)
	if err != nil {
		return shown(err)
	}
	for i, it := range items {
		if _, err := v.keepJSON(it, objs[i]); err != nil {
			return err
		}
	}
	return nil
}

// keepJSON keeps the JSON of an item in the served version.
func (v *view) keepJSON(it *cache.Item, obj kinds.Object) ([]byte, error) {
	return it.Bytes(v.customKey(), func(*cache.Item) ([]byte, error) { return jsoncodec.Append(nil, obj) })
}

// customJSON is an item that is not as it is stored. A failure is not kept: the
// webhook that converts may come back.
func (v *view) customJSON(it *cache.Item) ([]byte, error) {
	if it.Has(v.customKey()) {
		return it.Bytes(v.customKey(), func(it *cache.Item) ([]byte, error) {
			obj, err := v.h.stored(v.r, it)
			if err != nil {
				return nil, err
			}
			return jsoncodec.Append(nil, obj)
		})
	}
	obj, err := v.h.stored(v.r, it)
	if err != nil {
		return nil, err
	}
	return v.keepJSON(it, obj)
}

// shownObject is an item decoded in the version of the view.
func (v *view) shownObject(it *cache.Item) (kinds.Object, error) {
	if !v.r.Custom || clean(v.r, it) {
		return v.h.stored(v.r, it)
	}
	data, err := v.json(it)
	if err != nil {
		return nil, err
	}
	obj := v.r.New()
	_, err = (jsoncodec.Codec{}).Decode(data, obj, codecs.Ignore)
	return obj, err
}
