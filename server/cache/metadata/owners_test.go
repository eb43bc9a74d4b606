package metadata

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/cache/packing"
)

const (
	firstOwner  = `{"apiVersion":"v1","kind":"A","name":"a","uid":"1"}`
	secondOwner = `{"uid":"2","name":"\u0062","kind":"B","apiVersion":"g/v1","blockOwnerDeletion":true,"controller":false}`
)

// TestScanOwnerInfo: finalizers and owners of an object, and of bytes that only look like one.
func TestScanOwnerInfo(t *testing.T) {
	for text, want := range map[string]struct {
		OwnerInfo
		finalizers string
		owners     []packing.Owner
	}{
		``:                                  {},
		`{}`:                                {},
		`[]`:                                {},
		`{"metadata":null}`:                 {},
		`{"metadata":{"uid":"u"}}`:          {OwnerInfo: OwnerInfo{UID: "u"}},
		`{"metadata":{"uid":null}}`:         {},
		`{"spec":{"metadata":{"uid":"x"}}}`: {},
		`{"apiVersion":"v1","metadata":{"labels":{"uid":"x"},"uid":"u","deletionTimestamp":null,"finalizers":null,"ownerReferences":null},"spec":{}}`: {OwnerInfo: OwnerInfo{UID: "u"}, finalizers: "null"},
		`{ "metadata" : { "deletionTimestamp" : "2026-01-01T00:00:00Z" , "finalizers" : [ "x" , "orphan" ] , "uid" : "u" } }`: {
			OwnerInfo: OwnerInfo{UID: "u", Deleting: true, Orphan: true}, finalizers: `[ "x" , "orphan" ]`,
		},
		`{"metadata":{"finalizers":["foregroundDeletion"],"uid":"u"}}`: {OwnerInfo: OwnerInfo{UID: "u", Foreground: true}, finalizers: `["foregroundDeletion"]`},
		`{"metadata":{"ownerReferences":[` + firstOwner + `,` + secondOwner + `]}}`: {owners: []packing.Owner{
			{APIVersion: "v1", Kind: "A", Name: "a", UID: "1", JSON: []byte(firstOwner)},
			{APIVersion: "g/v1", Kind: "B", Name: "b", UID: "2", Blocks: true, JSON: []byte(secondOwner)},
		}},
		`{"metadata":{"ownerReferences":[{"blockOwnerDeletion":false}]}}`: {owners: []packing.Owner{{JSON: []byte(`{"blockOwnerDeletion":false}`)}}},
	} {
		b := []byte(text)
		m := ScanOwnerInfo(b)
		if d := cmp.Diff(want.OwnerInfo, m.OwnerInfo) + cmp.Diff(want.finalizers, string(m.Finalizers(b))) + cmp.Diff(want.owners, m.Owners(nil, b, true)); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func FuzzOwnerInfo(f *testing.F) {
	f.Add([]byte(`{"metadata":{"uid":"u","finalizers":["x"],"ownerReferences":[{"uid":"o","blockOwnerDeletion":true}]}}`))
	f.Add([]byte(`{"metadata":{"ownerReferences":[[{}],"x",1,null,{"uid":{}}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := ScanOwnerInfo(text)
		kept, ok := m.AppendCommonOwners([]byte("x"), text)
		if !ok {
			if len(kept) != 1 {
				t.Error("some of them are kept")
			}
			return
		}
		if d := cmp.Diff(m.Owners(nil, text, false), (&packing.Interner{}).Common(nil, kept[1:]).Refs(nil)); d != "" {
			t.Error(d)
		}
	})
}
