package plots_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/plots"
	"github.com/rowlock/rowlock/e2e/bench/record"
)

func run(name string, factor float64) *record.Run {
	r := &record.Run{Name: name, Taken: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Where: record.Where{Commit: "0123456789abcdef", Cores: 2, CPU: "a <fast> one", Database: "SQLite 3"}}
	goal := record.Of("start & ready", "cold", "s", record.Lower, 8*factor, 12*factor)
	goal.Goal = 10
	r.Add(goal)
	r.Add(record.Of("start & ready", "nothing", "s", record.Lower, 0))
	for _, server := range []string{"rowlock", "other"} {
		f := record.Of("rates", "create", "1/s", record.Higher, 100*factor, 200*factor, 300*factor)
		f.Server = server
		r.Add(f)
	}
	return r
}

// drawn returns the texts of a file, and the number of elements of each name. It fails if the file
// is no XML.
func drawn(t *testing.T, path string) (texts []string, elements map[string]int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	elements = map[string]int{}
	inText := false
	for dec := xml.NewDecoder(f); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return texts, elements
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
			for _, a := range token.Attr {
				if a.Name.Local == "class" {
					elements["."+a.Value]++
				}
			}
			inText = token.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				texts = append(texts, string(token))
			}
		}
	}
}

func TestOneRecord(t *testing.T) {
	dir := t.TempDir()
	names, err := plots.Draw(dir, []*record.Run{run("", 1)})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"start-ready.svg", "rates.svg"}; !slices.Equal(names, want) {
		t.Fatalf("drawn were %q", names)
	}
	texts, elements := drawn(t, filepath.Join(dir, "start-ready.svg"))
	for _, want := range []string{"start & ready", "cold ↓", "10 s (8 to 12), goal 10", "rowlock", "2026-05-01, 0123456789, 2 cores, a <fast> one, SQLite 3"} {
		if !slices.Contains(texts, want) {
			t.Errorf("no %q in %q", want, texts)
		}
	}
	if elements[".goal"] != 1 || elements[".spread"] != 1 {
		t.Errorf("one goal and one spread were to be drawn: %v", elements)
	}
	texts, elements = drawn(t, filepath.Join(dir, "rates.svg"))
	if !slices.Contains(texts, "other") || elements[".spread"] != 2 || elements[".s1"] != 2 { // a bar and the legend
		t.Errorf("two servers were to be drawn: %q %v", texts, elements)
	}
}

func TestSeveralRecords(t *testing.T) {
	dir := t.TempDir()
	if _, err := plots.Draw(dir, []*record.Run{run("before", 1), run("after", 0.5)}); err != nil {
		t.Fatal(err)
	}
	texts, elements := drawn(t, filepath.Join(dir, "rates.svg"))
	for _, want := range []string{"before rowlock", "after rowlock", "before other", "after other", "create ↑"} {
		if !slices.Contains(texts, want) {
			t.Errorf("no %q in %q", want, texts)
		}
	}
	if elements[".spread"] != 4 {
		t.Errorf("four bars were to be drawn: %v", elements)
	}
}

func TestReadableOnBoth(t *testing.T) {
	dir := t.TempDir()
	if _, err := plots.Draw(dir, []*record.Run{run("", 1)}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "rates.svg"))
	if err != nil {
		t.Fatal(err)
	}
	light, dark, found := strings.Cut(string(text), "prefers-color-scheme:dark")
	if !found || !strings.Contains(light, "text{") || !strings.Contains(dark, "text{") || strings.Contains(string(text), "<script") {
		t.Errorf("colors for light and dark pages, and no scripts, were expected:\n%s", text)
	}
}
