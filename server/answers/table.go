package answers

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// defaultColumns are the columns of kinds that define none.
var defaultColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
}

// columnsOf returns the definitions of a kind's columns.
func columnsOf(r *kinds.Resource) []metav1.TableColumnDefinition {
	if r.Columns.Cells == nil {
		return defaultColumns
	}
	return r.Columns.Definitions
}

// tableForm encodes a Table as JSON: rows of cells, with the requested part of each object.
type tableForm struct {
	*View
	now  time.Time                      // ages are relative to this
	make func(*cache.Item) (any, error) // makeRow
	show func([]byte) ([]byte, error)   // appends the object of a row as the client gets it; nil: none
	item *cache.Item
}

func newTableForm(v *View) *tableForm {
	f := &tableForm{View: v}
	f.make = f.makeRow
	if f.include != table.None {
		f.show = f.appendShown
	}
	return f
}

// row is the cached form of an item's row.
type row struct {
	cells      table.Row
	conditions []byte // encoded; nil for none
}

// row returns an item's row, and caches it.
func (f *tableForm) row(it *cache.Item) (*row, error) {
	if it.Err() != nil {
		return nil, objects.Corrupt(f.r, it)
	}
	if f.r.LoadMayFail() {
		if _, err := f.json(it); err != nil {
			return nil, err // a temporary error is not cached
		}
	}
	kept, err := it.Form(cache.FormKey{Form: cache.FormTableRow, For: f.r}, f.make)
	row, _ := kept.(*row)
	return row, err
}

func (f *tableForm) makeRow(it *cache.Item) (any, error) {
	out := &row{}
	var err error
	if f.r.Columns.Cells == nil {
		out.cells, err = table.Cells([]any{it.Name, it.Meta().CreationTimestamp})
		return out, err
	}
	obj, err := f.answers.Items.DecodeForColumns(f.ctx, f.r, it)
	if err != nil {
		return nil, err
	}
	if out.cells, err = table.Cells(f.r.Columns.Cells(obj, time.Time{})); err != nil || f.r.Columns.Conditions == nil {
		return out, err
	}
	if conditions := f.r.Columns.Conditions(obj); len(conditions) > 0 {
		out.conditions, err = f.codec().Append(nil, conditions)
	}
	return out, err
}

// appendRow appends an item as a row.
func (f *tableForm) appendRow(dst []byte, it *cache.Item) ([]byte, error) {
	row, err := f.row(it)
	if err != nil {
		return dst, err
	}
	f.item = it
	return row.cells.Append(dst, f.now, row.conditions, f.show)
}

// appendShown appends the requested part of the object to its row.
func (f *tableForm) appendShown(dst []byte) ([]byte, error) {
	if f.include == table.Metadata {
		return f.appendMetadata(dst, f.item)
	}
	data, err := f.json(f.item)
	return append(dst, data...), err
}

// Object implements Form: a table of one row.
func (f *tableForm) Object(dst []byte, it *cache.Item) ([]byte, error) {
	dst, err := f.single(dst, it, true)
	return append(dst, '\n'), err
}

func (f *tableForm) single(dst []byte, it *cache.Item, defined bool) ([]byte, error) {
	f.now = f.answers.now()
	p := objects.Page{Revision: it.Revision, Remaining: -1}
	meta := p.Meta()
	if it.Revision == 0 { // a dry run would have created it
		var as metav1.ObjectMeta
		if err := json.Unmarshal(it.Metadata(), &as); err != nil {
			return dst, err
		}
		meta.ResourceVersion = as.ResourceVersion
	}
	dst, err := f.head(dst, meta, defined)
	if err != nil {
		return dst, err
	}
	dst, err = f.appendRow(dst, it)
	return append(dst, table.Tail...), err
}

// head appends everything before the rows, with or without the definitions of the columns.
func (f *tableForm) head(dst []byte, meta *metav1.ListMeta, defined bool) ([]byte, error) {
	var definitions []byte
	if defined {
		var err error
		if definitions, err = table.Definitions(columnsOf(f.r)); err != nil {
			return dst, err
		}
	}
	return table.AppendHead(dst, f.as.As.Version, meta, definitions)
}

// Prepare implements Form. It sorts the items by the order of their kind's rows.
func (f *tableForm) Prepare(p *objects.Page) (int, error) {
	if f.r.Columns.Order != nil {
		p.Gather()
	}
	for _, it := range p.Items {
		// A readable object of a built-in kind always has a row: it is not made now, because there may be a
		// million of them.
		if it.Err() != nil || !f.r.HasGoType() || f.r.LoadMayFail() || !objects.Clean(f.r, it) {
			if _, err := f.row(it); err != nil {
				return 0, err
			}
		}
		if f.include == table.None || objects.Clean(f.r, it) {
			continue
		}
		if _, err := f.json(it); err != nil {
			return 0, err
		}
	}
	f.now = f.answers.now()
	return -1, f.sort(p)
}

func (f *tableForm) sort(p *objects.Page) error {
	order := f.r.Columns.Order
	if order == nil || len(p.Items) < 2 {
		return nil
	}
	type entry struct {
		it  *cache.Item
		obj kinds.Object
	}
	entries := make([]entry, len(p.Items))
	for i, it := range p.Items {
		obj, err := f.answers.Items.DecodeForColumns(f.ctx, f.r, it)
		if err != nil {
			return err
		}
		entries[i] = entry{it, obj}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return order(a.obj, b.obj) })
	for i := range entries {
		p.Items[i] = entries[i].it
	}
	return nil
}

// ListHead implements Form.
func (f *tableForm) ListHead(dst []byte, p *objects.Page) ([]byte, error) {
	return f.head(dst, p.Meta(), true)
}

// Item implements Form.
func (f *tableForm) Item(dst []byte, it *cache.Item, first bool) ([]byte, error) {
	return f.appendRow(f.codec().AppendItemHead(dst, first, 0), it)
}

// ListTail implements Form. As on a stock server, rows are null in an empty list of a kind without columns of
// its own.
func (f *tableForm) ListTail(dst []byte, p *objects.Page) []byte {
	if len(p.Items) == 0 && f.r.Columns.Cells == nil && bytes.HasSuffix(dst, []byte("[")) {
		return append(dst[:len(dst)-1], "null}\n"...)
	}
	return append(append(dst, table.Tail...), '\n')
}

// Event implements Form: a table with one row. The first of a watch has the definitions of the columns;
// others lack them, except for kinds that repeat them.
func (f *tableForm) Event(dst []byte, eventType string, it *cache.Item, first bool) ([]byte, error) {
	buf := getBuffer()
	defer putBuffer(buf)
	data, err := f.single((*buf)[:0], it, first || f.r.Columns.Repeated)
	if err != nil {
		return dst, err
	}
	*buf = data
	return f.codec().AppendEvent(dst, eventType, "", "", data), nil
}
