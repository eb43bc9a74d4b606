package release_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/rowlock/rowlock/server/release"
)

// TestChangesHaveARelease: each change has a row in the table. Without one it would hold for the oldest release too, whose answers never change.
func TestChangesHaveARelease(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "changes.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range f.Decls {
		if constants, ok := d.(*ast.GenDecl); ok && constants.Tok == token.CONST {
			for _, s := range constants.Specs {
				names = append(names, s.(*ast.ValueSpec).Names[0].Name)
			}
		}
	}
	for i, name := range names {
		c := release.Change(i)
		if release.Oldest.Has(c) || !release.Newest.Has(c) {
			t.Errorf("%s has %s: %t; %s has it: %t", release.Oldest, name, release.Oldest.Has(c), release.Newest, release.Newest.Has(c))
		}
	}
	if len(names) < 20 {
		t.Errorf("%d changes", len(names))
	}
}
