package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	linked   = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
)

// TestDocsNameWhatExists: every file and folder that the map of the project names is
// there, and every page that a page refers to.
func TestDocsNameWhatExists(t *testing.T) {
	t.Parallel()
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join("..", path))
		return err == nil
	}
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
		path := m[1]
		if !strings.Contains(path, "/") || strings.ContainsAny(path, " =<>[]{}()*") || strings.Contains(path, "...") || strings.HasPrefix(path, "/") || strings.Contains(path, "k8s.io") {
			continue // no path of this repository
		}
		for _, placeholder := range []string{"NAME", "GROUP", "KIND", "example"} {
			if i := strings.Index(path, placeholder); i >= 0 {
				path = path[:i]
			}
		}
		if path == "" {
			continue
		}
		named++
		if !exists(path) && !exists("server/"+path) && !exists("codecs/"+path) {
			t.Errorf("docs/architecture.md names %s, which does not exist", m[1])
		}
	}
	if named < 60 {
		t.Errorf("only %d paths were found", named)
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"design", "runbooks"} {
		more, err := filepath.Glob("../docs/" + folder + "/*.md")
		if err != nil || len(more) == 0 {
			t.Fatalf("docs/%s has %d pages (%v)", folder, len(more), err)
		}
		pages = append(pages, more...)
	}
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s refers to %s, which does not exist", page, m[1])
			}
		}
	}
}

// TestSecurityNamesTests: each test that SECURITY.md names is there, and each file.
func TestSecurityNamesTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, m := range testName.FindAllSubmatch(code, -1) {
			have[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
		switch name := m[1]; {
		case strings.HasPrefix(name, "Test"), strings.HasPrefix(name, "Fuzz"):
			if named++; !have[name] {
				t.Errorf("SECURITY.md names %s, which is not there", name)
			}
		case strings.HasPrefix(name, "e2e/"), strings.HasPrefix(name, "authx/"):
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Error(err)
			}
		}
	}
	if named < 60 {
		t.Errorf("SECURITY.md names %d tests", named)
	}
}

// TestDocsAreShort bounds the length of all pages together. Additions need cuts.
func TestDocsAreShort(t *testing.T) {
	t.Parallel()
	words := 0
	err := filepath.WalkDir("../docs", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, field := range strings.Fields(string(text)) {
			if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				words++ // the borders of tables are none
			}
		}
		return err
	})
	if err != nil || words > 50_000 || words < 10_000 {
		t.Errorf("docs have %d words, want at most 50000 (%v)", words, err)
	}
}
