package verbs

import (
	"io"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// buffers lends the memory that answers are put together in.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxKept is the largest buffer that goes back to the pool.
const maxKept = 4 * chunk

func getBuffer() *[]byte { return buffers.Get().(*[]byte) }

func putBuffer(b *[]byte) {
	if cap(*b) <= maxKept {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// defaultColumns are those of kinds that define none.
var defaultColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
}

// definitions are the encoded column definitions.
func (v *view) definitions() ([]byte, error) {
	if v.r.Columns.Cells == nil {
		return table.Definitions(defaultColumns)
	}
	return table.Definitions(v.r.Columns.Definitions)
}

// row is what is kept of an item's row in a table.
type row struct {
	cells      table.Row
	conditions []byte // encoded; nil for none
}

// row makes an item's row, once.
func (v *view) row(it *cache.Item) (*row, error) {
	if it.Corrupt != nil {
		return nil, v.corrupt(it)
	}
	if v.r.Custom {
		if _, err := v.json(it); err != nil {
			return nil, err // which may pass: nothing of it is kept
		}
	}
	kept, err := it.Form(cache.FormKey{Form: cache.FormTableRow, For: v.r}, v.makeRow)
	row, _ := kept.(*row)
	return row, err
}

func (v *view) makeRow(it *cache.Item) (any, error) {
	out := &row{}
	var err error
	if v.r.Columns.Cells == nil {
		out.cells, err = table.Cells([]any{it.Name, it.Meta().CreationTimestamp})
		return out, err
	}
	obj, err := v.h.Objects.DecodeForColumns(v.ctx, v.r, it)
	if err != nil {
		return nil, err
	}
	if out.cells, err = table.Cells(v.r.Columns.Cells(obj, time.Time{})); err != nil || v.r.Columns.Conditions == nil {
		return out, err
	}
	if conditions := v.r.Columns.Conditions(obj); len(conditions) > 0 {
		out.conditions, err = jsoncodec.Append(nil, conditions)
	}
	return out, err
}

// appendRow appends an item as a row.
func (v *view) appendRow(dst []byte, it *cache.Item, include table.Include, now time.Time) ([]byte, error) {
	row, err := v.row(it)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"cells":`...)
	dst = row.cells.AppendCells(dst, now)
	if row.conditions != nil {
		dst = append(dst, `,"conditions":`...)
		dst = append(dst, row.conditions...)
	}
	dst = append(dst, `,"object":`...)
	switch include {
	case table.Metadata:
		if dst, err = v.appendPartial(dst, it); err != nil {
			return dst, err
		}
	case table.Object:
		object, err := v.json(it)
		if err != nil {
			return dst, err
		}
		dst = append(dst, object...)
	case table.None:
		dst = append(dst, "null"...)
	}
	return append(dst, '}'), nil
}

// streamTable writes a table in bounded pieces.
func (v *view) streamTable(w io.Writer, p *objects.Page, include table.Include) error {
	definitions, err := v.definitions()
	if err != nil {
		return err
	}
	buf := getBuffer()
	defer putBuffer(buf)
	dst, err := table.AppendHead((*buf)[:0], v.form.As.Version, p.Meta(), definitions)
	if err != nil {
		return err
	}
	now := v.h.now()
	for i, it := range p.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = v.appendRow(dst, it, include, now); err != nil {
			return err
		}
		if len(dst) >= chunk {
			if _, err := w.Write(dst); err != nil {
				return err
			}
			dst = dst[:0]
		}
	}
	dst = append(append(dst, table.Tail...), '\n')
	_, err = w.Write(dst)
	*buf = dst
	return err
}

// sendTable answers with a table.
func (v *view) sendTable(c *Call, code int, p *objects.Page) error {
	include, err := table.ParseInclude(c.Info.Query.Get("includeObject"))
	if err != nil {
		return err
	}
	if err := v.rows(p); err != nil {
		return err
	}
	if p, err = v.sorted(p); err != nil {
		return err
	}
	if v.form.Type == codecs.YAML {
		return v.sendTableYAML(c, code, p, include)
	}
	return v.sendStream(c, code, func(w io.Writer) error { return v.streamTable(w, p, include) })
}

// rows makes the rows of a page, so that nothing can fail once the answer has begun.
func (v *view) rows(p *objects.Page) error {
	for _, it := range p.Items {
		if _, err := v.row(it); err != nil {
			return err
		}
	}
	return nil
}

// sorted puts the items of a page in the order of their kind's rows.
func (v *view) sorted(p *objects.Page) (*objects.Page, error) {
	order := v.r.Columns.Order
	if order == nil || len(p.Items) < 2 {
		return p, nil
	}
	type entry struct {
		it  *cache.Item
		obj kinds.Object
	}
	entries := make([]entry, len(p.Items))
	for i, it := range p.Items {
		obj, err := v.h.Objects.Decode(v.ctx, v.r, it)
		if err != nil {
			return nil, err
		}
		entries[i] = entry{it, obj}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return order(a.obj, b.obj) })
	out := *p
	out.Items = make([]*cache.Item, len(entries))
	for i := range entries {
		out.Items[i] = entries[i].it
	}
	return &out, nil
}

// tableEvent is one event's object: a table of one row. Only the first of a watch
// has the definitions, but for kinds that repeat them.
func (v *view) tableEvent(it *cache.Item, include table.Include, first bool) ([]byte, error) {
	var definitions []byte
	var err error
	if first || v.r.Columns.Repeated {
		if definitions, err = v.definitions(); err != nil {
			return nil, err
		}
	}
	p := objects.Page{Revision: it.Revision, Remaining: -1}
	dst, err := table.AppendHead(nil, v.form.As.Version, p.Meta(), definitions)
	if err != nil {
		return nil, err
	}
	if dst, err = v.appendRow(dst, it, include, v.h.now()); err != nil {
		return nil, err
	}
	return append(dst, table.Tail...), nil
}
