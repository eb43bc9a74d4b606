package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/server/release/gen/generate"
)

// old are versions that no server serves.
var old = []string{"extensions/", "apps/v1beta", "batch/v1beta1", "policy/v1beta1", "rbac/v1alpha1", "rbac/v1beta1", "events/v1beta1", "scheduling/v1beta1", "discovery/v1beta1", "node/v1alpha1", "node/v1beta1", "flowcontrol/v1beta", "autoscaling/v2beta", "imagepolicy/", "authorization/v1beta1", "certificates/v1beta1.CertificateSigning", "coordination/v1beta1.Lease"}

// about is a type, or a field of one.
type about struct{ name, field string }

// changedWords returns the descriptions that differ between two releases: a line each, with the text of the older one.
func changedWords(oldest, newest string) ([]byte, error) {
	was, is := map[about]string{}, map[about]string{}
	for version, texts := range map[string]map[about]string{oldest: was, newest: is} {
		for _, m := range []struct{ path, below string }{{"k8s.io/api", ""}, {"k8s.io/apimachinery", "pkg/apis/meta"}} {
			if err := readWords(texts, m.path, m.below, version); err != nil {
				return nil, err
			}
		}
	}
	var lines []string
	for a, text := range is {
		if slices.ContainsFunc(old, func(o string) bool { return strings.HasPrefix(strings.TrimPrefix(a.name, "k8s.io/api/"), o) }) {
			continue
		}
		if before, ok := was[a]; ok && before != text {
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s\n", a.name, a.field, strconv.Quote(before)))
		}
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, "")), nil
}

// readWords reads the documentation of a module's types.
func readWords(texts map[about]string, module, below, version string) error {
	dir, err := generate.Download(module, version)
	if err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(dir, below), func(p string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "types_swagger_doc_generated.go" {
			return err
		}
		rel, err := filepath.Rel(dir, filepath.Dir(p))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			spec := g.Specs[0].(*ast.ValueSpec)
			name := path.Join(module, filepath.ToSlash(rel)) + "." + strings.TrimPrefix(spec.Names[0].Name, "map_")
			for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
				pair := e.(*ast.KeyValueExpr)
				field, err := strconv.Unquote(pair.Key.(*ast.BasicLit).Value)
				if err != nil {
					return err
				}
				text, err := strconv.Unquote(pair.Value.(*ast.BasicLit).Value)
				if err != nil {
					return err
				}
				texts[about{name, field}] = text
			}
		}
		return nil
	})
}
