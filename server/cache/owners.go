package cache

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache/packing"
)

// OwnerInfo is what the garbage collector needs to know of an object that others name as their owner.
type OwnerInfo struct {
	UID        string
	Deleting   bool // metadata.deletionTimestamp is set: it waits for something before it goes
	Foreground bool // it has the finalizer that waits for its dependents to go
	Orphan     bool // it has the finalizer that waits for its dependents to forget it
}

// Owner is one of an object's references to owners.
type Owner = packing.Owner

// mostOwners is how many bytes the references of a packed object may take beside its value. Those
// of objects that have more are read from there: whoever writes them would have them kept twice.
const mostOwners = 1 << 10

// OwnerInfo needs no value of a packed item. That of a corrupt one is empty.
func (it *Item) OwnerInfo() OwnerInfo {
	b := it.body.Load()
	switch {
	case it.Corrupt != nil:
		return OwnerInfo{}
	case b.packed():
		return b.ownerInfo()
	}
	return it.ownerInfoOf(b).OwnerInfo
}

// Owners appends an item's references to owners, without JSON. It needs no value of a packed item
// unless there are many.
func (it *Item) Owners(dst []Owner) []Owner {
	b := it.body.Load()
	switch {
	case it.Corrupt != nil:
		return dst
	case b.packed() && b.ownersKept():
		return b.common.Refs(dst)
	case b.packed():
		b = &body{data: it.line(b, make([]byte, 0, b.size+1))}
	}
	return appendOwners(dst, it.ownerInfoOf(b).owners.of(b.json()), false)
}

// Written is what stands in the item's metadata: the list of its finalizers, and its references to
// owners with JSON.
func (it *Item) Written() (finalizers []byte, owners []Owner) {
	if it.Corrupt != nil {
		return nil, nil
	}
	b := it.plain()
	m := it.ownerInfoOf(b)
	return m.finalizers.of(b.json()), appendOwners(nil, m.owners.of(b.json()), true)
}

// ownerInfoOf is as much of a plain body's metadata as OwnerInfo and Owners need. It is not kept: most of
// what is asked for it once is packed soon, and asked for nothing else.
func (it *Item) ownerInfoOf(b *body) *Meta {
	if m := b.meta(); m != nil {
		return m
	}
	return scanOwnerInfo(b.json())
}

// scanOwnerInfo reads the parts of a Meta that OwnerInfo and Owners need. What is no object has none.
func scanOwnerInfo(b []byte) *Meta {
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

// part is where something lies in an object's bytes; the zero part is nowhere.
type part struct{ from, to int32 }

func (p part) of(b []byte) []byte {
	if p.to <= p.from {
		return nil
	}
	return b[p.from:p.to:p.to]
}

// ownerInfoMember reads a member of the metadata that OwnerInfo or Owners need, or passes over another.
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
func appendOwners(dst []Owner, list []byte, whole bool) []Owner {
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

func readOwner(b []byte, at int) (o Owner, end int) {
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

// elements is scan.Elements for what may be no list.
func elements(b []byte, at int, element func(at int) (end int)) int {
	if at >= len(b) || b[at] != '[' {
		return scan.Skip(b, at)
	}
	return scan.Loose.Elements(b, at, func(at int) (int, bool) { return element(at), true })
}

// appendKeptOwners appends what common keeps of a list of references; false if that is too much,
// and then it appends nothing.
func appendKeptOwners(dst, list []byte) (kept []byte, ok bool) {
	if len(list) == 0 {
		return dst, true
	}
	if len(list) > 4*mostOwners {
		return dst, false
	}
	kept = dst
	for _, o := range appendOwners(nil, list, false) {
		kept = packing.AppendOwner(kept, &o)
	}
	if len(kept)-len(dst) > mostOwners {
		return dst, false
	}
	return kept, true
}
