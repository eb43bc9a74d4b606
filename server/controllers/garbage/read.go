package garbage

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

// metadata is what the collector reads of an object.
type metadata struct {
	uid                string
	deleting           bool   // it waits for something before it goes
	foreground, orphan bool   // it has the finalizer
	finalizers         []byte // the list, as it stands
	refs               []reference
}

// reference is one of an object's references to owners.
type reference struct {
	apiVersion, kind, name, uid string
	blocks                      bool
	json                        []byte // as it stands
}

// state is what an object waits for, as the graph knows it. A stock collector lets dependents
// go first where an object has both finalizers.
func (m *metadata) state() graph.State {
	switch {
	case !m.deleting:
		return 0
	case m.orphan:
		return graph.Orphaning
	case m.foreground:
		return graph.Foreground
	}
	return 0
}

// read reads the metadata of an encoded object. What it says is part of the text where it
// can be, and of reused where references are.
func read(b []byte, reused []reference) metadata {
	m := metadata{refs: reused[:0]}
	members(b, scan.Space(b, 0), func(name []byte, at int) (end int, more bool) {
		if string(name) != "metadata" {
			return scan.Skip(b, at), true
		}
		return members(b, at, func(name []byte, at int) (int, bool) { return m.member(b, name, at), true }), false
	})
	return m
}

func (m *metadata) member(b, name []byte, at int) (end int) {
	switch string(name) {
	case "uid":
		m.uid, end = text(b, at)
		return end
	case "deletionTimestamp":
		when, end := text(b, at)
		m.deleting = when != ""
		return end
	case "finalizers":
		end = elements(b, at, func(at int) (end int) {
			finalizer, end := text(b, at)
			m.foreground = m.foreground || finalizer == metav1.FinalizerDeleteDependents
			m.orphan = m.orphan || finalizer == metav1.FinalizerOrphanDependents
			return end
		})
		m.finalizers = part(b, at, end)
		return end
	case "ownerReferences":
		return elements(b, at, func(at int) int {
			r, end := readReference(b, at)
			m.refs = append(m.refs, r)
			return end
		})
	}
	return scan.Skip(b, at)
}

func readReference(b []byte, at int) (r reference, end int) {
	end = members(b, at, func(name []byte, at int) (end int, more bool) {
		switch string(name) {
		case "apiVersion":
			r.apiVersion, end = text(b, at)
		case "kind":
			r.kind, end = text(b, at)
		case "name":
			r.name, end = text(b, at)
		case "uid":
			r.uid, end = text(b, at)
		case "blockOwnerDeletion":
			end = scan.Skip(b, at)
			r.blocks = at < len(b) && b[at] == 't'
		default:
			end = scan.Skip(b, at)
		}
		return end, true
	})
	r.json = part(b, at, end)
	return r, end
}

// members is scan.Members for what may be no object.
func members(b []byte, at int, member func(name []byte, at int) (end int, more bool)) int {
	if at >= len(b) || b[at] != '{' {
		return scan.Skip(b, at)
	}
	return scan.Loose.Members(b, at, func(name scan.Name, at int) (int, bool) { return member(name.In(b), at) })
}

func elements(b []byte, at int, element func(at int) (end int)) int {
	if at >= len(b) || b[at] != '[' {
		return scan.Skip(b, at)
	}
	return scan.Loose.Elements(b, at, func(at int) (int, bool) { return element(at), true })
}

// text is the string at an index; "" for anything else.
func text(b []byte, at int) (string, int) {
	if at >= len(b) || b[at] != '"' {
		return "", scan.Skip(b, at)
	}
	end, has := scan.String(b, at)
	switch {
	case end < 0:
		return "", -1
	case has&scan.Escaped != 0:
		return scan.Unquote(b[at:end]), end
	}
	return view(b[at+1 : end-1]), end
}

// view is b as a string without a copy: the bytes of an object in memory never change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func part(b []byte, from, to int) []byte {
	if to <= from {
		return nil
	}
	return b[from:to:to]
}
