// Package metadata reads an encoded object as far as the cache needs to know it, without decoding it: labels, selectable
// fields, owners, and the place of its resourceVersion. Meta has two encoded forms: the object's JSON (Scan), and the few
// bytes that the cache keeps with a packed object (AppendPacked, Unpack).
package metadata

import (
	"errors"
	"math/bits"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
)

var (
	errSyntax = errors.New("not valid JSON")
	errShape  = errors.New("not an API object")
)

// skip is scan.Value at a depth: it checks the value at an index, and returns the index after it.
func skip(b []byte, at, depth int) int { return scan.Loose.Value(b, at, scan.MaxDepth-depth) }

// OwnerInfo holds the metadata that the garbage collector needs of an owner.
type OwnerInfo struct {
	UID        string
	Deleting   bool // metadata.deletionTimestamp is set
	Foreground bool // it has the finalizer foregroundDeletion
	Orphan     bool // it has the finalizer orphan
}

// Owner is one of an object's references to owners.
type Owner = packing.Owner

// Meta holds the metadata that the read path needs. It is scanned from the bytes, not decoded; its strings may be views of them.
type Meta struct {
	OwnerInfo
	Labels            labels.Set
	Fields            []string // values of the storage's selectable fields, in their order
	CreationTimestamp string   // as encoded

	Storage *kinds.Storage // whose fields these are

	metadata   part // the place of the metadata in the bytes
	finalizers part
	owners     part
}

// Scan reads the Meta of an encoded object of a storage (nil: no fields), and no member behind those that Meta needs: a status may
// be large. The bytes must be valid JSON without repeated members, and must not change afterwards.
func Scan(b []byte, st *kinds.Storage) (*Meta, error) {
	m := &Meta{Storage: st}
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
			end = m.readMetadata(b, at)
			m.metadata = part{int32(at), int32(end)}
		} else {
			end = m.find(b, name.In(b), at, 0, wanted)
		}
		wanted = m.outside(name.In(b), wanted)
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

func (m *Meta) readMetadata(b []byte, at int) int {
	if at < len(b) && b[at] != '{' {
		return scan.Skip(b, at)
	}
	return scan.Loose.Members(b, at, func(name scan.Name, at int) (end int, more bool) {
		switch string(name.In(b)) {
		case "creationTimestamp":
			m.CreationTimestamp, end = text(b, at)
		case "labels":
			end = m.readLabels(b, at)
		default:
			end = m.ownerInfoMember(b, name.In(b), at)
		}
		return end, true
	})
}

func (m *Meta) readLabels(b []byte, at int) int {
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

// outside returns the wanted fields whose paths do not begin with key.
func (m *Meta) outside(key []byte, wanted uint64) uint64 {
	for left := wanted; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(left); m.Storage.Fields[i].Path[0] == string(key) {
			wanted &^= 1 << i
		}
	}
	return wanted
}

// find sets the wanted fields whose paths have key at a depth.
func (m *Meta) find(b, key []byte, at, depth int, wanted uint64) int {
	var below uint64
	for left := wanted; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		path := m.Storage.Fields[i].Path
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

// ScanOwnerInfo reads only what OwnerInfo, Finalizers and Owners need. Bytes that are not an object have none of it.
func ScanOwnerInfo(b []byte) *Meta {
	m := &Meta{}
	top := scan.Space(b, 0)
	if top >= len(b) || b[top] != '{' {
		return m
	}
	scan.Loose.Members(b, top, func(name scan.Name, at int) (int, bool) {
		if string(name.In(b)) != "metadata" {
			return scan.Skip(b, at), true
		}
		if at >= len(b) || b[at] != '{' {
			return scan.Skip(b, at), false
		}
		return scan.Loose.Members(b, at, func(name scan.Name, at int) (int, bool) {
			return m.ownerInfoMember(b, name.In(b), at), true
		}), false
	})
	return m
}

// part is a range of an object's bytes; the zero part is none.
type part struct{ from, to int32 }

func (p part) of(b []byte) []byte {
	if p.to <= p.from {
		return nil
	}
	return b[p.from:p.to:p.to]
}

// In returns the metadata of the object that m was scanned from, as JSON; nil if it has none.
func (m *Meta) In(b []byte) []byte { return m.metadata.of(b) }

// Finalizers returns the list of finalizers in the object that m was scanned from, as JSON; nil if it has none.
func (m *Meta) Finalizers(b []byte) []byte { return m.finalizers.of(b) }

// Owners appends the references to owners in the object that m was scanned from, each with its JSON if whole.
func (m *Meta) Owners(dst []packing.Owner, b []byte, whole bool) []packing.Owner {
	return appendOwners(dst, m.owners.of(b), whole)
}

// ownerInfoMember reads a member of the metadata that OwnerInfo or Owners need, or skips another.
func (m *Meta) ownerInfoMember(b, name []byte, at int) (end int) {
	switch string(name) {
	case "uid":
		m.UID, end = text(b, at)
	case "deletionTimestamp":
		var s string
		s, end = text(b, at)
		m.Deleting = s != ""
	case "finalizers":
		end = elements(b, at, func(at int) (end int) {
			finalizer, end := text(b, at)
			m.Foreground = m.Foreground || finalizer == metav1.FinalizerDeleteDependents
			m.Orphan = m.Orphan || finalizer == metav1.FinalizerOrphanDependents
			return end
		})
		m.finalizers = part{int32(at), int32(end)}
	case "ownerReferences":
		end = scan.Skip(b, at)
		m.owners = part{int32(at), int32(end)}
	default:
		end = scan.Skip(b, at)
	}
	return end
}

// appendOwners appends the references of a list, each with its JSON if that is wanted.
func appendOwners(dst []packing.Owner, list []byte, whole bool) []packing.Owner {
	elements(list, 0, func(at int) int {
		o, end := readOwner(list, at)
		if whole && end > at {
			o.JSON = list[at:end:end]
		}
		dst = append(dst, o)
		return end
	})
	return dst
}

func readOwner(b []byte, at int) (o packing.Owner, end int) {
	if at >= len(b) || b[at] != '{' {
		return o, scan.Skip(b, at)
	}
	end = scan.Loose.Members(b, at, func(name scan.Name, at int) (end int, more bool) {
		switch string(name.In(b)) {
		case "apiVersion":
			o.APIVersion, end = text(b, at)
		case "kind":
			o.Kind, end = text(b, at)
		case "name":
			o.Name, end = text(b, at)
		case "uid":
			o.UID, end = text(b, at)
		case "blockOwnerDeletion":
			end = scan.Skip(b, at)
			o.Blocks = at < len(b) && b[at] == 't'
		default:
			end = scan.Skip(b, at)
		}
		return end, true
	})
	return o, end
}

// elements is scan.Elements for a value that may not be a list.
func elements(b []byte, at int, element func(at int) (end int)) int {
	if at >= len(b) || b[at] != '[' {
		return scan.Skip(b, at)
	}
	return scan.Loose.Elements(b, at, func(at int) (int, bool) { return element(at), true })
}

// text returns the string at i without a copy where that is possible; anything but a
// string gives its literal, null gives "".
func text(b []byte, i int) (s string, end int) {
	if i < len(b) && b[i] == '"' {
		end, has := scan.String(b, i)
		if end < 0 {
			return "", -1
		}
		if has&scan.Escaped != 0 {
			return scan.Unquote(b[i:end]), end
		}
		return packing.View(b[i+1 : end-1]), end
	}
	if end = scan.Skip(b, i); end < 0 {
		return "", -1
	}
	if b[i] == 'n' {
		return "", end
	}
	return packing.View(b[i:end]), end
}
