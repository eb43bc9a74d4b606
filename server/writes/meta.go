package writes

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ResetServerFields clears the fields of a new object that only the server sets.
func ResetServerFields(obj metav1.Object) {
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetUID("")
	obj.SetSelfLink("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
}

// stamp sets those fields.
func stamp(obj metav1.Object, now time.Time) {
	ResetServerFields(obj)
	obj.SetCreationTimestamp(metav1.Time{Time: now.UTC().Truncate(time.Second)})
	obj.SetUID(types.UID(uuid.NewString()))
}

const (
	suffixLetters = "bcdfghjklmnpqrstvwxz2456789" // no vowels, nothing that looks like another
	suffixLength  = 5
	maxBase       = 63 - suffixLength
	nameTries     = 8
)

// generate makes a name from a base, shortened if necessary, and a random suffix.
func generate(base string) string {
	if len(base) > maxBase {
		base = base[:maxBase]
	}
	var b [suffixLength]byte
	for i := range b {
		b[i] = suffixLetters[rand.IntN(len(suffixLetters))]
	}
	return base + string(b[:])
}

// dropRepeatedOwners drops repeated owners and returns them.
func dropRepeatedOwners(obj metav1.Object) (repeated []string) {
	refs := obj.GetOwnerReferences()
	if len(refs) < 2 {
		return nil
	}
	seen := make(rules.Seen[owner], len(refs))
	kept := refs[:0:0]
	for _, r := range refs {
		if seen.Again(ownerOf(r)) {
			repeated = append(repeated, string(r.UID))
			continue
		}
		kept = append(kept, r)
	}
	if repeated != nil {
		obj.SetOwnerReferences(kept)
	}
	return repeated
}

// owner is an OwnerReference with its pointers resolved, so that it can be compared.
type owner struct {
	metav1.OwnerReference
	controller, blocks tristate
}

type tristate struct{ set, value bool }

func ownerOf(r metav1.OwnerReference) owner {
	state := func(b *bool) tristate { return tristate{b != nil, b != nil && *b} }
	o := owner{r, state(r.Controller), state(r.BlockOwnerDeletion)}
	o.Controller, o.BlockOwnerDeletion = nil, nil
	return o
}

const (
	repeatedOwners = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"

	repeatedOwnersAdmitted = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"
)

// warnOwners drops repeated owners of an object from a client, with a warning.
func warnOwners(req *Request, obj metav1.Object) { warnRepeated(req, repeatedOwners, obj) }

// warnAdmittedOwners is warnOwners for an object after admission.
func warnAdmittedOwners(req *Request, obj metav1.Object) {
	warnRepeated(req, repeatedOwnersAdmitted, obj)
}

func warnRepeated(req *Request, format string, obj metav1.Object) {
	if repeated := dropRepeatedOwners(obj); repeated != nil {
		req.Warn(fmt.Sprintf(format, strings.Join(repeated, ", ")))
	}
}

// onlyTimesDiffer reports whether two lists of managed fields differ only in their times, and so in the order of their entries.
func onlyTimesDiffer(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	if !slices.EqualFunc(a, b, equalExceptTime) {
		if a, b = byManager(a), byManager(b); !slices.EqualFunc(a, b, equalExceptTime) {
			return false
		}
	}
	return !slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool { return x.Time.Equal(y.Time) })
}

func equalExceptTime(x, y metav1.ManagedFieldsEntry) bool {
	return x.Manager == y.Manager && x.Operation == y.Operation && x.APIVersion == y.APIVersion &&
		x.FieldsType == y.FieldsType && x.Subresource == y.Subresource && (x.FieldsV1 == nil) == (y.FieldsV1 == nil) &&
		(x.FieldsV1 == nil || string(x.FieldsV1.Raw) == string(y.FieldsV1.Raw))
}

// byManager returns entries in an order that does not depend on their times.
func byManager(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	sorted := slices.Clone(entries)
	sort.Slice(sorted, func(i, j int) bool { // the generic sort of such large structs would take 16 KB of the binary
		x, y := &sorted[i], &sorted[j]
		return cmp.Or(cmp.Compare(x.Manager, y.Manager), cmp.Compare(x.Operation, y.Operation), cmp.Compare(x.APIVersion, y.APIVersion), cmp.Compare(x.Subresource, y.Subresource)) < 0
	})
	return sorted
}

// emptied reports whether an update removes the last reason for which a terminating object remains.
func emptied(st *kinds.Storage, obj, old kinds.Object) bool {
	if len(obj.GetFinalizers()) > 0 || old.GetDeletionTimestamp() == nil {
		return false
	}
	if st.Held != nil {
		return !st.Held(obj)
	}
	grace := old.GetDeletionGracePeriodSeconds()
	return grace != nil && *grace == 0
}

// keepMeta copies the metadata that an update can neither change nor remove from old.
func keepMeta(obj, old kinds.Object) {
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if old.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(grace)
	}
}
