package writes

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// wipe takes away what the server alone decides of a new object.
func wipe(obj metav1.Object) {
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetUID("")
	obj.SetSelfLink("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
}

// stamp fills in what the server alone decides of a new object.
func stamp(obj metav1.Object, now time.Time) {
	wipe(obj)
	obj.SetCreationTimestamp(metav1.Time{Time: now.UTC().Truncate(time.Second)})
	obj.SetUID(types.UID(uuid.NewString()))
}

const (
	suffixLetters = "bcdfghjklmnpqrstvwxz2456789" // no vowels, nothing that looks like another
	suffixLength  = 5
	maxBase       = 63 - suffixLength
	nameTries     = 8
)

// generate makes a name from a base: a random suffix, and a base short enough.
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

// oneOwner drops repeated owners and says which there were.
func oneOwner(obj metav1.Object) (repeated []string) {
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

// WarnOwners drops repeated owners of an object that a client sent, and tells it.
func WarnOwners(req *Request, obj metav1.Object) { warnRepeated(req, repeatedOwners, obj) }

// warnAdmittedOwners is WarnOwners for what admission made of an object.
func warnAdmittedOwners(req *Request, obj metav1.Object) {
	warnRepeated(req, repeatedOwnersAdmitted, obj)
}

func warnRepeated(req *Request, format string, obj metav1.Object) {
	if repeated := oneOwner(obj); repeated != nil {
		req.Warn(fmt.Sprintf(format, strings.Join(repeated, ", ")))
	}
}

// onlyTimesDiffer says whether two records of ownership differ in times, and in nothing else.
func onlyTimesDiffer(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	differ := false
	for i := range a {
		x, y := &a[i], &b[i]
		differ = differ || !x.Time.Equal(y.Time)
		if x.Manager != y.Manager || x.Operation != y.Operation || x.APIVersion != y.APIVersion ||
			x.FieldsType != y.FieldsType || x.Subresource != y.Subresource || (x.FieldsV1 == nil) != (y.FieldsV1 == nil) {
			return false
		}
		if x.FieldsV1 != nil && string(x.FieldsV1.Raw) != string(y.FieldsV1.Raw) {
			return false
		}
	}
	return differ
}

// emptied says whether an update takes away the last thing that kept a
// terminating object.
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

// keepMeta copies from old what an update can neither change nor remove.
func keepMeta(obj, old kinds.Object) {
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetSelfLink("")
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if old.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(grace)
	}
}
