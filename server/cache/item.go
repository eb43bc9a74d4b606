// Package cache keeps the live objects and their recent changes in memory, as bytes.
//
// It promises: readers see each resource at a revision, in key order, without
// decoding; a snapshot costs O(1) and never changes; an event is framed once for
// each wire form and shared by all its watchers; a slow watcher is cut off, never
// waited for. The store's feed is its only writer.
package cache

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
)

// Item is one version of one object. It is immutable, but for the wire forms and
// the metadata that are made on first use, at most once, and kept.
type Item struct {
	Namespace string
	Name      string
	Revision  int64
	Created   int64
	JSON      []byte // the whole object with its resourceVersion in place; "" if Corrupt
	Corrupt   error  // why the stored value cannot be read

	meta  atomic.Pointer[Meta]
	forms [FormCount]atomic.Pointer[[]byte]
}

// Meta is what the read path needs to know of an object. It is scanned from the
// bytes, not decoded.
type Meta struct {
	UID               string
	Labels            labels.Set
	Fields            []string // values of the storage's selectable fields, in their order
	CreationTimestamp string   // as encoded
	Deleting          bool     // metadata.deletionTimestamp is set
}

// Form names a kept wire form of an item.
type Form uint8

const (
	FormProtobuf Form = iota // the object's raw protobuf message
	FormCBOR
	FormPartialJSON // PartialObjectMetadata as JSON
	FormTableRow    // see codecs/table
	FormCount
)

// EventType is ADDED, MODIFIED or DELETED.
type EventType uint8

const (
	Added EventType = iota
	Modified
	Deleted
)

// Event is one change of one object, shared by all watchers. For Deleted, Item is
// the last state at the delete's revision.
type Event struct {
	Type Type
	Item *Item
	Prev *Item // nil for Added
}

// Type is the event's type before any selector is looked at.
type Type = EventType
