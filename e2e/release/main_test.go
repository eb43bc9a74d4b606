package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestDescribe: this test's own binary is described, twice with the same bytes.
func TestDescribe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run([]string{self}, out); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("two documents of one binary differ")
	}
	var d spdx
	if err := json.Unmarshal(first.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != "SPDX-2.3" || len(d.Packages) < 2 || len(d.Packages[0].Checksums[0].Value) != 64 || !strings.HasPrefix(d.Packages[1].Version, "go1.") {
		t.Errorf("%+v", d)
	}
	ids := map[string]bool{"SPDXRef-DOCUMENT": true}
	for _, p := range d.Packages {
		if ids[p.ID] {
			t.Errorf("%s stands there twice", p.ID)
		}
		ids[p.ID] = true
	}
	for _, r := range d.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%+v names what is not there", r)
		}
	}
	if err := run(nil, &first); err == nil {
		t.Error("no binary is no error")
	}
	if err := run([]string{"main.go"}, &first); err == nil {
		t.Error("a text is taken for a binary")
	}
}
