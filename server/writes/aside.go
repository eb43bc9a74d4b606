package writes

import (
	"bytes"
	"context"
	"fmt"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// longestSparing is how many bytes the body of a patch has at most that is looked at for what it names.
const longestSparing = 16 << 10

// Sparing says that a patch of what sub is a part of leaves alone what is large in it: it names nothing
// but the status, and which object and which resource version that is of.
func Sparing(sub *kinds.Subresource, patchType string, body []byte) bool {
	if sub == nil || sub.Aside == nil || len(body) > longestSparing || patchType != codecs.PatchMerge && patchType != codecs.PatchStrategic {
		return false
	}
	body = bytes.TrimSpace(body)
	return names(body, 0, func(name string, at int) int {
		switch name {
		case "apiVersion", "kind", "status":
			return scan.Skip(body, at)
		case "metadata":
			return names(body, at, func(name string, at int) int {
				if name != "name" && name != "uid" && name != "resourceVersion" {
					return -1
				}
				return scan.Skip(body, at)
			})
		}
		return -1
	}) == len(body)
}

// names calls fn with each name in an object and where its value begins; fn returns where that ends, as
// names does, or -1.
func names(text []byte, at int, fn func(name string, at int) int) int {
	return scan.Loose.Members(text, at, func(name scan.Name, at int) (int, bool) {
		if name.Has&scan.Escaped != 0 {
			return -1, false
		}
		end := fn(string(name.In(text)), at)
		return end, end >= 0
	})
}

// part is an object that is written without what the write leaves alone.
type part struct {
	aside    *kinds.Aside
	item     *cache.Item
	obj, old kinds.Object
	filled   bool   // it is in the objects all the same, for somebody looks at it
	yield    func() // of the change
}

// decode decodes the object that a change is of, or of one that spares it what it cares for.
func (w *Writer) decode(ctx context.Context, req *Request, ch *Change, item *cache.Item) (kinds.Object, *part, error) {
	if !ch.sparing || req.DryRun { // whoever runs dry is shown the object
		old, err := w.Objects.Decode(ctx, req.Resource, item)
		return old, nil, err
	}
	old, err := w.Objects.DecodeCut(req.Resource, item, req.Sub.Aside)
	return old, &part{aside: req.Sub.Aside, item: item, old: old, yield: ch.yield}, err
}

// attributesOf describe an update to admission.
func (w *Writer) attributesOf(ctx context.Context, req *Request, obj, old kinds.Object, p *part) *admission.Attributes {
	a := req.attributes(admission.Update, obj, old)
	if p != nil {
		p.obj = obj
		a.Fill = func() error { return w.fill(ctx, req, p) }
	}
	return a
}

// show makes the objects whole where the rules of their kind look at all of them.
func (w *Writer) show(ctx context.Context, req *Request, obj kinds.Object, p *part) error {
	if p == nil || p.aside.Looks == nil {
		return nil
	}
	if p.obj = obj; !p.aside.Looks(obj, p.old) {
		return nil
	}
	return w.fill(ctx, req, p)
}

// turn waits until all of an object may be decoded by a write that was to do without, and yields its turn
// among those who write the object meanwhile.
func (req *Request) turn(yield func()) error {
	if req.Turn == nil {
		return nil
	}
	return req.Turn(yield)
}

// drop gives back the memory of a text that encoded made and nobody has seen.
func (w *Writer) drop(p *part, value []byte) {
	if !p.joins() {
		w.Objects.Release(value)
	}
}

// fill makes the objects of a write whole.
func (w *Writer) fill(ctx context.Context, req *Request, p *part) error {
	if p.filled {
		return nil
	}
	if err := req.turn(p.yield); err != nil {
		return err
	}
	whole, err := w.Objects.Decode(ctx, req.Resource, p.item)
	if err != nil {
		return err
	}
	p.aside.Fill(whole, p.obj, p.old)
	p.filled = true
	return nil
}

// joins says that the text of the object is joined with what the write has left alone, in memory of its
// own, which is nobody's to give back.
func (p *part) joins() bool { return p != nil && !p.filled }

// encoded is the text of an object, with what the write has left alone.
func (w *Writer) encoded(ctx context.Context, req *Request, obj kinds.Object, p *part) ([]byte, error) {
	value, err := w.Objects.Encode(ctx, req.Resource, obj)
	if err != nil || !p.joins() {
		return value, err
	}
	whole, fit := p.aside.Join(value, p.item.JSON())
	w.Objects.Release(value)
	if !fit {
		return nil, fmt.Errorf("what a write of %s has left alone does not fit the object any more", req.Name)
	}
	return whole, nil
}
