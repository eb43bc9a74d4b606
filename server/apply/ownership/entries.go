package ownership

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// maxUpdaters limits the entries of updates of an object; the oldest are merged, as on a stock server.
const maxUpdaters = 10

// joinedUpdaters is the manager of the entry that the library joins the oldest into.
const joinedUpdaters = "ancient-changes"

// isReset reports whether a list clears the record.
func isReset(entries []metav1.ManagedFieldsEntry) bool {
	if len(entries) != 1 {
		return false
	}
	e := entries[0]
	return e.Manager == "" && e.Operation == "" && e.APIVersion == "" && e.Time == nil &&
		e.FieldsType == "" && e.FieldsV1 == nil && e.Subresource == ""
}

// sameEntries reports whether a client sent back the entries that it read.
func sameEntries(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		if x.FieldsV1 == nil || y.FieldsV1 == nil {
			return false
		}
		return x.Manager == y.Manager && x.Operation == y.Operation && x.APIVersion == y.APIVersion &&
			x.FieldsType == y.FieldsType && x.Subresource == y.Subresource && x.Time.Equal(y.Time) &&
			bytes.Equal(x.FieldsV1.Raw, y.FieldsV1.Raw)
	})
}

// sortEntries sorts entries as the library does. The generic sort of such large structs would take 20 KB of the binary.
func sortEntries(entries []metav1.ManagedFieldsEntry) {
	sort.Slice(entries, func(i, j int) bool { return compareEntries(&entries[i], &entries[j]) < 0 })
}

func compareEntries(a, b *metav1.ManagedFieldsEntry) int {
	return cmp.Or(
		cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(seconds(a.Time), seconds(b.Time)),
		cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.APIVersion, b.APIVersion),
		cmp.Compare(a.Subresource, b.Subresource),
	)
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// identity distinguishes entries.
type identity struct {
	manager, version, subresource string
	operation                     metav1.ManagedFieldsOperationType
}

func identityOf(e *metav1.ManagedFieldsEntry) identity {
	version := e.APIVersion
	if e.Operation == metav1.ManagedFieldsOperationApply {
		version = "" // an applier is one manager, whatever version it applies
	}
	return identity{e.Manager, version, e.Subresource, e.Operation}
}

// stamp gives the time now to the entries in after that the library has dated, which reads
// the clock itself. Entries that it left alone keep the times that they have in before.
func stamp(before, after []metav1.ManagedFieldsEntry, now time.Time) {
	times := make(map[identity]*metav1.Time, len(before))
	for i := range before {
		times[identityOf(&before[i])] = before[i].Time
	}
	for i := range after {
		e := &after[i]
		if old, ok := times[identityOf(e)]; e.Time != nil && (!ok || !e.Time.Equal(old)) && e.Manager != joinedUpdaters {
			e.Time = timestamp(now)
		}
	}
	sortEntries(after)
}

func timestamp(now time.Time) *metav1.Time {
	return &metav1.Time{Time: now.UTC().Truncate(time.Second)}
}

// resetFields returns the paths that a write to an endpoint cannot change, and so not own.
func resetFields(r *kinds.Resource, sub string) []string {
	if sub == "" {
		if r.Storage == nil {
			return nil
		}
		return r.Storage.ResetFields
	}
	if s := r.Sub(sub); s != nil && s.Update != nil {
		if sub == "status" && !r.HasGoType() && r.Release.Has(release.StatusOwnsNoMetadata) {
			return append([]string{"metadata"}, s.Update.ResetFields...)
		}
		return s.Update.ResetFields
	}
	return nil
}
