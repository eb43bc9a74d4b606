package cache

import (
	"math/bits"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
	"k8s.io/apimachinery/pkg/labels"
)

// Meta is what the read path needs to know of an object. It is scanned from the
// bytes, not decoded; its strings may be views of them.
type Meta struct {
	OwnerInfo
	Labels            labels.Set
	Fields            []string // values of the storage's selectable fields, in their order
	CreationTimestamp string   // as encoded

	storage    *kinds.Storage // whose fields these are
	from, to   int            // where the metadata lies in the bytes
	finalizers part
	owners     part
}

// ScanMeta reads the Meta of an encoded object of a storage (nil: no fields). The
// bytes must be valid JSON, and must not change afterwards.
func ScanMeta(b []byte, st *kinds.Storage) (*Meta, error) {
	m := &Meta{storage: st}
	var fields []kinds.SelectableField
	if st != nil {
		fields = st.Fields
	}
	if len(fields) > 0 {
		m.Fields = make([]string, len(fields))
	}
	var wanted uint64
	for i := range fields {
		if fields[i].Func == nil && len(fields[i].Path) > 0 && i < 64 {
			wanted |= 1 << i
		}
	}
	met := false
	end := scan.Loose.Members(b, scan.Space(b, 0), func(name scan.Name, at int) (end int, more bool) {
		if string(name.In(b)) == "metadata" {
			met = true
			end = m.metadata(b, at)
			m.from, m.to = at, end
		} else {
			end = m.find(b, name.In(b), at, 0, wanted)
		}
		return end, !met || wanted != 0
	})
	if end < 0 {
		return nil, errSyntax
	}
	for i := range fields {
		if f := &fields[i]; f.Func != nil {
			m.Fields[i] = f.Func(b)
		}
		if m.Fields[i] == "" {
			m.Fields[i] = fields[i].Default
		}
	}
	return m, nil
}

func (m *Meta) metadata(b []byte, at int) int {
	if at < len(b) && b[at] != '{' {
		return scan.Skip(b, at)
	}
	return scan.Loose.Members(b, at, func(name scan.Name, at int) (end int, more bool) {
		switch string(name.In(b)) {
		case "creationTimestamp":
			m.CreationTimestamp, end = text(b, at)
		case "labels":
			end = m.labels(b, at)
		default:
			end = m.ownerInfoMember(b, name.In(b), at)
		}
		return end, true
	})
}

func (m *Meta) labels(b []byte, at int) int {
	if at < len(b) && b[at] != '{' {
		return scan.Skip(b, at)
	}
	m.Labels = labels.Set{}
	return scan.Loose.Members(b, at, func(name scan.Name, at int) (int, bool) {
		value, end := text(b, at)
		m.Labels[packing.View(name.In(b))] = value
		return end, true
	})
}

// find fills the wanted fields whose paths lead through key at a depth.
func (m *Meta) find(b, key []byte, at, depth int, wanted uint64) int {
	var below uint64
	for left := wanted; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		path := m.storage.Fields[i].Path
		switch {
		case len(path) <= depth || path[depth] != string(key):
		case len(path) > depth+1:
			below |= 1 << i
		case at < len(b) && b[at] != '{' && b[at] != '[':
			m.Fields[i], _ = text(b, at)
		}
	}
	if below == 0 || at >= len(b) || b[at] != '{' {
		return scan.Skip(b, at)
	}
	return scan.Loose.Members(b, at, func(name scan.Name, at int) (int, bool) {
		return m.find(b, name.In(b), at, depth+1, below), true
	})
}
