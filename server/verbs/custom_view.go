package verbs

import (
	"context"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// How many objects are converted together, and how many bytes of them: a webhook's
// answer has a limit too.
const (
	convertAtOnce = 500
	convertBytes  = 2 << 20
)

// convertPage makes the forms of the items of a page that are not as they are stored,
// so that many are converted at once, and nothing can fail when the answer has begun.
func (v *view) convertPage(ctx context.Context, p *page) error {
	if !v.r.Custom {
		return nil
	}
	return v.convertMany(ctx, p.items)
}

// convertMany makes the forms of items of a custom resource.
func (v *view) convertMany(ctx context.Context, items []*cache.Item) error {
	key := v.customKey()
	var waiting []*cache.Item
	size := 0
	for _, it := range items {
		if it.Corrupt != nil || clean(v.r, it) || it.Has(key) {
			continue
		}
		if len(waiting) == convertAtOnce || len(waiting) > 0 && size+len(it.JSON) > convertBytes {
			if err := v.convertItems(ctx, waiting); err != nil {
				return err
			}
			waiting, size = waiting[:0], 0
		}
		waiting, size = append(waiting, it), size+len(it.JSON)
	}
	if len(waiting) == 0 {
		return nil
	}
	return v.convertItems(ctx, waiting)
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
			obj, err := v.h.stored(v.ctx, v.r, it)
			if err != nil {
				return nil, err
			}
			return jsoncodec.Append(nil, obj)
		})
	}
	obj, err := v.h.stored(v.ctx, v.r, it)
	if err != nil {
		return nil, err
	}
	return v.keepJSON(it, obj)
}

// shownObject is an item decoded in the version of the view.
func (v *view) shownObject(it *cache.Item) (kinds.Object, error) {
	if !v.r.Custom || clean(v.r, it) {
		return v.h.stored(v.ctx, v.r, it)
	}
	data, err := v.json(it)
	if err != nil {
		return nil, err
	}
	obj := v.r.New()
	_, err = (jsoncodec.Codec{}).Decode(data, obj, codecs.Ignore)
	return obj, err
}
