package metadata

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/kinds"
)

// TestPackedForm: Unpack returns the metadata that AppendPacked packed. Usual metadata takes few bytes.
func TestPackedForm(t *testing.T) {
	const id, created = "0b7e6f3c-4d7b-4a51-9c1e-0123456789ab", "2026-01-01T00:00:00Z"
	usual := []string{"node-000123.zone-1.example", "Always", "default-scheduler", "default", "false", "Running", "10.0.0.1", "", "node-000123.zone-1.example"}
	for name, m := range map[string]*Meta{
		"usual":   {OwnerInfo: OwnerInfo{UID: id}, CreationTimestamp: created, Fields: usual},
		"nothing": {},
		"flags":   {OwnerInfo: OwnerInfo{UID: id, Deleting: true, Foreground: true, Orphan: true}, Fields: []string{}},
		"other forms of a UUID": {
			OwnerInfo: OwnerInfo{UID: strings.ToUpper(id)}, CreationTimestamp: "2026-01-01T00:00:00.5Z", Fields: []string{"x", "running", "y"},
		},
		"a URN":       {OwnerInfo: OwnerInfo{UID: "urn:uuid:" + id}, CreationTimestamp: "2026-01-01T01:00:00+01:00"},
		"no dash":     {OwnerInfo: OwnerInfo{UID: strings.ReplaceAll(id, "-", "")}, CreationTimestamp: "1969-12-31T23:59:59Z"},
		"many fields": {Fields: append(strings.Split(strings.Repeat("a,b,", 20), ","), "last", "last")},
		"long":        {OwnerInfo: OwnerInfo{UID: strings.Repeat("u", 300)}, CreationTimestamp: strings.Repeat("2", 200), Fields: []string{strings.Repeat("f", 1000), ""}},
	} {
		m.Storage, m.metadata = &kinds.Storage{}, part{3, 400}
		b := m.AppendPacked(nil, name == "long")
		if fields, ok := CheckPacked(b, 400, nil); !ok || !cmp.Equal(append([]string{}, fields...), append([]string{}, m.Fields...)) {
			t.Errorf("%s: the fields are %q, %v", name, fields, ok)
		}
		got, info := Unpack(b, m.Storage, nil), UnpackOwnerInfo(b)
		if got.UID != m.UID || got.CreationTimestamp != m.CreationTimestamp || got.Deleting != m.Deleting || got.metadata != m.metadata ||
			!cmp.Equal(append([]string{}, got.Fields...), append([]string{}, m.Fields...)) || info != m.OwnerInfo || HasManyOwners(b) != (name == "long") {
			t.Errorf("%s: it is %+v and %+v, not %+v", name, got, info, m)
		}
		if fields := UnpackFields(b, m.Storage, nil); !cmp.Equal(fields.Fields, got.Fields) || fields.metadata != m.metadata {
			t.Errorf("%s: the fields are %+v", name, fields)
		}
		if name == "usual" && len(b) > 72 {
			t.Errorf("it takes %d bytes", len(b))
		}
		if name == "usual" { // its last field is the same as the first one
			for n := range maxSame {
				other := append(bytes.Clone(b[:len(b)-1]), byte(sameFrom+n))
				if fields, ok := CheckPacked(other, 400, nil); ok != (n < len(usual)-1) || ok && fields[len(usual)-1] != usual[n] {
					t.Errorf("the same as field %d: %q, %v", n, fields, ok)
				}
			}
		}
		shared := Shared{"other", "node-000123.zone-1.example", "x", "b", strings.Repeat("f", 1000)}
		short := AppendShared([]byte("before"), b, nil, func(field int, text string) (int, bool) {
			if field >= len(m.Fields) || m.Fields[field] != text {
				t.Errorf("%s: field %d is %q", name, field, text)
			}
			n := slices.Index(shared, text)
			return n, n >= 0
		})[len("before"):]
		if again := Unpack(short, m.Storage, shared); !reflect.DeepEqual(again, got) || len(short) > len(b) {
			t.Errorf("%s: with shared values it is %+v in %d bytes", name, again, len(short))
		}
		if back := AppendShared(nil, short, shared, func(int, string) (int, bool) { return 0, false }); !bytes.Equal(back, b) {
			t.Errorf("%s: without them again it is %q instead of %q", name, back, b)
		}
		if _, ok := CheckPacked(short, 400, nil); ok != bytes.Equal(short, b) {
			t.Errorf("%s: shared values are checked as %v", name, ok)
		}
		for n := range b {
			if _, ok := CheckPacked(b[:n], 400, nil); ok {
				t.Errorf("%s: %d of its %d bytes are taken for whole", name, n, len(b))
			}
		}
	}
}
