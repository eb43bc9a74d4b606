// Command gen writes the descriptions of API types and fields in the oldest release that differ from those in the newest:
// words.txt, and its compressed form, which the server embeds.
//
// Usage: gen directory. It downloads the modules of both.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// oldest and newest are the compared releases; the newest is that of go.mod. Releases in between have the
// texts of the newest, because their servers are binaries of it (see release.Version.Emulated).
const oldest, newest = "v0.32.13", "v0.36.2"

// old are versions that no server serves.
var old = []string{"extensions/", "apps/v1beta", "batch/v1beta1", "policy/v1beta1", "rbac/v1alpha1", "rbac/v1beta1", "events/v1beta1", "scheduling/v1beta1", "discovery/v1beta1", "node/v1alpha1", "node/v1beta1", "flowcontrol/v1beta", "autoscaling/v2beta", "imagepolicy/", "authorization/v1beta1", "certificates/v1beta1.CertificateSigning", "coordination/v1beta1.Lease"}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// about is a type, or a field of one.
type about struct{ name, field string }

func run(dir string) error {
	was, is := map[about]string{}, map[about]string{}
	for version, texts := range map[string]map[about]string{oldest: was, newest: is} {
		for _, m := range []struct{ path, below string }{{"k8s.io/api", ""}, {"k8s.io/apimachinery", "pkg/apis/meta"}} {
			if err := read(texts, m.path, m.below, version); err != nil {
				return err
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
	text := []byte(strings.Join(lines, ""))
	var packed bytes.Buffer
	zw, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := zw.Write(text); err != nil {
		return err
	}
	if err := zw.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "words.txt.gz"), packed.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "words.txt"), text, 0o644)
}

// read reads the documentation of a module's types.
func read(texts map[about]string, module, below, version string) error {
	out, err := exec.Command("go", "mod", "download", "-json", module+"@"+version).Output()
	if err != nil {
		return fmt.Errorf("downloading %s %s: %w", module, version, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return fmt.Errorf("downloading %s %s: %w", module, version, err)
	}
	return filepath.WalkDir(filepath.Join(found.Dir, below), func(p string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "types_swagger_doc_generated.go" {
			return err
		}
		rel, err := filepath.Rel(found.Dir, filepath.Dir(p))
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
