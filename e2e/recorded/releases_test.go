package recorded_test

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rowlock/rowlock/e2e/recorded"
)

// Answers of a release take the place of those that scenarios want, for that release alone.
func TestReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "answers.json.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(file)
	if _, err := packed.Write([]byte(`{"families":["core"],"answers":[
		{"scenario":"core-a","step":1,"releases":["1.35","1.36"],"want":{"status":404}},
		{"scenario":"core-a","step":1,"releases":["1.34"],"want":{"status":403}}]}`)); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	releases, err := recorded.LoadReleases(path)
	if err != nil {
		t.Fatal(err)
	}
	two := `"steps":[{"do":"GET /a","want":{"status":200}},{"do":"GET /b","want":{"status":200}}]}`
	list := []*recorded.Scenario{load(t, `{"name":"core-a",`+two), load(t, `{"name":"beta-a",`+two), load(t, `{"name":"core-a","differs":[0],`+two)}
	for release, want := range map[string]int{"1.33": 200, "1.34": 403, "1.35": 404, "1.36": 404} {
		got := releases.Of(release, list)
		if len(got) != 2 {
			t.Fatalf("%s: %d scenarios, want those of core alone", release, len(got))
		}
		a, own := got[0], got[1]
		if a.Steps[0].Want.Status != 200 || a.Steps[1].Want.Status != want || own.Steps[1].Want.Status != 200 {
			t.Errorf("%s: %d %d, and of a recording of its own %d; want 200 %d 200", release, a.Steps[0].Want.Status, a.Steps[1].Want.Status, own.Steps[1].Want.Status, want)
		}
		if flag := "--emulated-version=" + release; !slices.Contains(a.Flags(), flag) || !slices.Contains(own.Flags(), flag) {
			t.Errorf("%s: flags %v and %v", release, a.Flags(), own.Flags())
		}
	}
	if s := list[0]; s.Steps[1].Want.Status != 200 || len(s.Flags()) > 0 {
		t.Errorf("the scenario was changed: %+v %v", s.Steps[1].Want, s.Flags())
	}
}
