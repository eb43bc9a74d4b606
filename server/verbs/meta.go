package verbs

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
	"github.com/rowlock/rowlock/sqlstore"
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

// warnOwners tells the client about repeated owners.
func warnOwners(c *Call, obj metav1.Object, admitted bool) {
	repeated := oneOwner(obj)
	if repeated == nil {
		return
	}
	format := ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"
	if admitted {
		format = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"
	}
	c.Scope.Warn(fmt.Sprintf(format, strings.Join(repeated, ", ")))
}

// onlyTimesDiffer says whether two records of ownership differ in nothing but times.
func onlyTimesDiffer(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Manager != y.Manager || x.Operation != y.Operation || x.APIVersion != y.APIVersion ||
			x.FieldsType != y.FieldsType || x.Subresource != y.Subresource || (x.FieldsV1 == nil) != (y.FieldsV1 == nil) {
			return false
		}
		if x.FieldsV1 != nil && string(x.FieldsV1.Raw) != string(y.FieldsV1.Raw) {
			return false
		}
	}
	return true
}

// emptied says whether an update takes away the last thing that kept a
// terminating object.
func emptied(st *kinds.Storage, obj, old kinds.Object) bool {
	if len(obj.GetFinalizers()) > 0 || old.GetDeletionTimestamp() == nil {
		return false
	}
	if st.Key == namespaces {
		return namespaceEmptied(obj)
	}
	grace := old.GetDeletionGracePeriodSeconds()
	return grace != nil && *grace == 0
}

// registryKey is the name by which a stock server's messages call an object.
func registryKey(r *kinds.Resource, k sqlstore.Key) string {
	plural := r.Storage.Key
	if !r.Custom {
		plural, _, _ = strings.Cut(plural, ".")
	}
	switch plural {
	case "services":
		plural = "services/specs"
	case "endpoints":
		plural = "services/endpoints"
	case "nodes":
		plural = "minions"
	case "replicationcontrollers":
		plural = "controllers"
	case "ingresses":
		plural = "ingress"
	case "customresourcedefinitions", "apiservices":
		plural = r.Group + "/" + plural
	default:
		if r.Custom {
			plural = r.Group + "/" + r.Plural
		}
	}
	path := "/registry/" + plural
	if k.Namespace != "" {
		path += "/" + k.Namespace
	}
	return path + "/" + k.Name
}
