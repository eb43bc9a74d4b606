package release

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindRow is one kind in one version.
type kindRow struct {
	group, version, kind string
	in                   span // where the libraries have it
	cycles               []cycleRow
}

// cycleRow is the life cycle of a kind in the libraries from one release on: minor numbers, 0 for never.
type cycleRow struct {
	from, introduced, deprecated, removed uint8
	group, version, kind                  string // replacement
}

// Lifecycle holds the minor releases in which a kind in a version was introduced, deprecated and removed; 0: unknown, or never.
type Lifecycle struct {
	Introduced, Deprecated, Removed int
	Replacement                     schema.GroupVersionKind // empty: none is named
}

func compareKinds(row kindRow, k schema.GroupVersionKind) int {
	return cmp.Or(cmp.Compare(row.group, k.Group), cmp.Compare(row.version, k.Version), cmp.Compare(row.kind, k.Kind))
}

// findKind finds a kind; nil: it is as old in all releases, and not deprecated.
func findKind(k schema.GroupVersionKind) *kindRow {
	i, ok := slices.BinarySearchFunc(kindRows, k, compareKinds)
	if !ok {
		return nil
	}
	return &kindRows[i]
}

// Lifecycle returns the life cycle of a kind in the binary of a release.
func (v Version) Lifecycle(k schema.GroupVersionKind) Lifecycle {
	row := findKind(k)
	if row == nil {
		return Lifecycle{}
	}
	var l Lifecycle
	for i, c := range row.cycles {
		if i > 0 && int(c.from) > v.Binary().Minor() {
			break
		}
		l = Lifecycle{int(c.introduced), int(c.deprecated), int(c.removed), schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind}}
	}
	return l
}

// Deprecated reports whether the binary of a release warns clients that use a kind in a version.
func (v Version) Deprecated(k schema.GroupVersionKind) bool {
	deprecated := v.Lifecycle(k).Deprecated
	return deprecated != 0 && deprecated <= v.Binary().Minor()
}

// Knows reports whether a server of a release can read a kind in a version, served or not. Kinds
// that the table does not list are known to all.
func (v Version) Knows(k schema.GroupVersionKind) bool {
	row := findKind(k)
	return row == nil || row.in.has(v)
}

// Introduced reports whether a release, or an earlier one, introduced a kind in a version.
func (v Version) Introduced(k schema.GroupVersionKind) bool {
	return v.Lifecycle(k).Introduced <= v.Minor() && (findKind(k) == nil || int(findKind(k).in.since) <= v.Minor())
}

// unserved are kinds that the libraries of the newest release have, and no release that its binary emulates serves.
var unserved = map[schema.GroupVersionKind]bool{
	{Group: "storage.k8s.io", Version: "v1alpha1", Kind: "VolumeAttributesClass"}: true,
}

// Removed reports whether a kind in a version is no longer served by a release: the release has removed it, or its binary
// no longer has it.
func (v Version) Removed(k schema.GroupVersionKind) bool {
	removed := v.Lifecycle(k).Removed
	return removed != 0 && removed <= v.Minor() || v.Emulated() && unserved[k] ||
		v.Introduced(k) && !(v.Knows(k) && v.Binary().Knows(k))
}

// Kinds returns the kinds that were added or removed, or that have lifecycle information, in the order of group, version
// and name.
func Kinds() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, row := range kindRows {
		all = append(all, schema.GroupVersionKind{Group: row.group, Version: row.version, Kind: row.kind})
	}
	return all
}
