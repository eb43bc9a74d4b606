package schema_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/schema"
)

// TestIdleDocumentsGo: documents of custom kinds are dropped when they are not requested, and are the same
// when made again. They are also the same whether all definitions are in memory or the common ones.
func TestIdleDocumentsGo(t *testing.T) {
	now := time.Unix(1e9, 0)
	resources := asServed(t, operated(t, 60, 3))
	resources = append(resources, defined(t, "example.com", "lamps", "Lamp", "color")...)
	d := describing(kinds.NewCatalogue(append(builtin.Resources(), resources...)), false)
	d.CustomText, d.Now = textOf, func() time.Time { return now }
	const form2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	version2 := func(accept string) []byte { return get(t, d.ServeV2, "/openapi/v2", "Accept", accept).Body.Bytes() }
	keys := map[string][]byte{}
	for _, r := range resources {
		keys["/openapi/v3/apis/"+r.APIVersion()] = nil
	}
	for key := range keys {
		fresh := schema.NewDocuments(kinds.NewCatalogue(append(builtin.Resources(), resources...)), "v1.32.0")
		fresh.CustomSchema, fresh.CustomDigest = d.CustomSchema, d.CustomDigest
		var err error
		if keys[key], err = fresh.Whole(strings.TrimPrefix(key, "/openapi/v3/")); err != nil {
			t.Fatal(err)
		}
	}
	first2, firstJSON := version2(form2), version2("application/json")
	for range 2 {
		for key, want := range keys {
			if w := get(t, d.ServeV3, key); !bytes.Equal(w.Body.Bytes(), want) {
				t.Errorf("%s: %d bytes instead of %d", key, w.Body.Len(), len(want))
			}
		}
	}
	all := d.Kept()
	now = now.Add(time.Minute)
	if left := d.Sweep(); left != 2 || d.Kept() >= all || d.Kept() == 0 {
		t.Errorf("after a minute %d are left, and %d of %d bytes", left, d.Kept(), all)
	}
	if !bytes.Equal(version2(form2), first2) {
		t.Error("another document")
	}
	now = now.Add(time.Hour)
	if left := d.Sweep(); left != 0 || d.Kept() != 0 {
		t.Errorf("after an hour %d are left, and %d bytes", left, d.Kept())
	}
	if !bytes.Equal(version2(form2), first2) || !bytes.Equal(version2("application/json"), firstJSON) {
		t.Error("what comes again is another document")
	}
	for key, want := range keys {
		if w := get(t, d.ServeV3, key); !bytes.Equal(w.Body.Bytes(), want) {
			t.Errorf("%s again: %d bytes instead of %d", key, w.Body.Len(), len(want))
		}
	}
}

// TestLargeIdleDocumentsGoSooner: a large form of version 2 is dropped after a minute, another one after ten,
// each by itself.
func TestLargeIdleDocumentsGoSooner(t *testing.T) {
	now := time.Unix(1e9, 0)
	resources := asServed(t, operated(t, 60, 3))
	d := describing(kinds.NewCatalogue(append(builtin.Resources(), resources...)), false)
	d.CustomText, d.Now = textOf, func() time.Time { return now }
	version2 := func(accept string) []byte { return get(t, d.ServeV2, "/openapi/v2", "Accept", accept).Body.Bytes() }
	const form2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	first2 := version2(form2)
	wire := d.Kept() // with the paths, from which the protobuf was made
	version2("application/json")
	asJSON := d.Kept() - wire
	if asJSON <= 0 {
		t.Fatalf("%d bytes in protobuf, and %d more as JSON", wire, asJSON)
	}
	d.Large(1 << 30)
	now = now.Add(time.Minute)
	if left := d.Sweep(); left != 2 || d.Kept() != wire+asJSON {
		t.Errorf("after a minute %d of two small ones are left", left)
	}
	version2(form2)
	d.Large(1)
	if left := d.Sweep(); left != 1 || d.Kept() != wire {
		t.Errorf("of two large ones %d are left, the one that was asked for just now", left)
	}
	now = now.Add(time.Minute)
	if left := d.Sweep(); left != 0 || d.Kept() != 0 {
		t.Errorf("after a minute %d large ones are left, and %d bytes", left, d.Kept())
	}
	if !bytes.Equal(version2(form2), first2) {
		t.Error("what comes again is another document")
	}
}

// BenchmarkVersion3 makes documents of version 3 of definitions of real size.
func BenchmarkVersion3(b *testing.B) {
	resources := asServed(b, operated(b, 0, 20))
	d := describing(kinds.NewCatalogue(append(builtin.Resources(), resources...)), false)
	now := time.Unix(1e9, 0)
	d.Now = func() time.Time { return now }
	get(b, d.ServeV3, "/openapi/v3")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if w := get(b, d.ServeV3, "/openapi/v3/apis/"+resources[i%len(resources)].APIVersion(), "Accept-Encoding", "gzip"); w.Code != 200 {
			b.Fatal(w.Code)
		}
		now = now.Add(time.Minute)
		d.Sweep()
	}
}
