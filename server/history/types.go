// Package history defines the group history.rowlock.dev: its kinds and the names of revisions, and computes the
// differences between two states of an object and the managers that made them. It reads nothing but its arguments.
//
//	types.go   Revision, Difference, Moment
//	name.go    names of revisions, which may contain times
//	schema.go  the schema of lists: the fields that identify their items
//	diff.go    the differences between two states; path.go the names of fields
//	owners.go  which entries of managedFields changed, and who owns a field
//
// The cost is proportional to the size of the objects. Results are truncated at the given bounds, and marked then. Uncertain
// values are omitted.
package history

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the only version of the group.
var GroupVersion = schema.GroupVersion{Group: "history.rowlock.dev", Version: "v1"}

// UserAnnotation names the last writer of an object, for components that see every write, such as an
// admission policy. Its value is shown as it is: users that may write the object may write it, unless that is
// refused.
const UserAnnotation = "history.rowlock.dev/user"

// Kinds of writes.
const (
	Created = "create"
	Updated = "update"
	Deleted = "delete"
)

// Revision is one write of one object. As ClusterRevision it is of an object without a
// namespace; the two differ in nothing else.
type Revision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Object    Reference        `json:"object"`
	Revision  string           `json:"revision"`
	Previous  string           `json:"previous,omitempty"` // the previous write, if it is kept
	Change    string           `json:"change"`             // Created, Updated, Deleted
	WrittenAt metav1.MicroTime `json:"writtenAt"`
	// SupersededBy is the next write; empty for a live state, and for a delete.
	SupersededBy string `json:"supersededBy,omitempty"`
	// Managers are the entries of managedFields that this write added or renewed. If Previous is empty and
	// the write is not a create, they are unknown.
	Managers []Manager `json:"managers,omitempty"`
	// User is the writer, if an annotation names it.
	User string `json:"user,omitempty"`
	// ChangedFields are paths; MoreChangedFields means that there were too many.
	ChangedFields     []string `json:"changedFields,omitempty"`
	MoreChangedFields bool     `json:"moreChangedFields,omitempty"`
	// Unreadable is why a list shows nothing of the object.
	Unreadable string `json:"unreadable,omitempty"`
	// Content is the object as it was written, of a Deleted one its last state.
	Content *runtime.RawExtension `json:"content,omitempty"`
}

// Reference names the object. Resource and group are those in which it is stored, version and kind those of
// the content.
type Reference struct {
	Resource  string `json:"resource"`
	Group     string `json:"group"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// Manager is an entry of managedFields.
type Manager struct {
	Manager     string       `json:"manager"`
	Operation   string       `json:"operation"`
	Subresource string       `json:"subresource,omitempty"`
	Time        *metav1.Time `json:"time,omitempty"`
}

// RevisionList is a page of the revisions of one object, the newest first.
type RevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Revision `json:"items"`
}

// Difference lists the changes between two states of one object.
type Difference struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Object        Reference         `json:"object"`
	From          string            `json:"from"` // revisions of the writes that made the states
	To            string            `json:"to"`
	FromWrittenAt *metav1.MicroTime `json:"fromWrittenAt,omitempty"`
	ToWrittenAt   *metav1.MicroTime `json:"toWrittenAt,omitempty"`
	Changes       []Change          `json:"changes"`
	Truncated     bool              `json:"truncated,omitempty"` // there are more changes
}

// Kinds of changes of a field.
const (
	Add     = "add"
	Remove  = "remove"
	Replace = "replace"
)

// Change is one field that differs. An empty path is the whole object, which one of the states
// did not have; its Revision gives its content.
type Change struct {
	Path string `json:"path"`
	Op   string `json:"op"`
	From any    `json:"from,omitempty"`
	To   any    `json:"to,omitempty"`
	// Manager owns the field after the change, or is the only writer in between.
	Manager string `json:"manager,omitempty"`
	// Omitted means that the values are too long to be shown.
	Omitted bool `json:"omitted,omitempty"`
}

// Moment is which revision held at a time.
type Moment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Revision  string            `json:"revision"`
	WrittenAt *metav1.MicroTime `json:"writtenAt,omitempty"` // where it is known still
	Oldest    string            `json:"oldest"`              // the first revision at which everything can be read
}

// DeepCopyObject implements runtime.Object. Values of a Difference are immutable, and shared.
func (r *Revision) DeepCopyObject() runtime.Object {
	out := *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Managers, out.ChangedFields = append([]Manager(nil), r.Managers...), append([]string(nil), r.ChangedFields...)
	if r.Content != nil {
		out.Content = r.Content.DeepCopy()
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *RevisionList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Revision, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Revision)
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (d *Difference) DeepCopyObject() runtime.Object {
	out := *d
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Changes = append([]Change(nil), d.Changes...)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (m *Moment) DeepCopyObject() runtime.Object {
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}
