package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/bench/record"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values           []float64
		median, min, max float64
		text             string
	}{
		{[]float64{5}, 5, 5, 5, "5 ms"},
		{[]float64{9, 1, 4}, 4, 1, 9, "4 ms (1 to 9)"},
		{[]float64{4, 2}, 3, 2, 4, "3 ms (2 to 4)"},
		{[]float64{0.0123, 1234.5}, 617.25615, 0.0123, 1234.5, "617 ms (0.0123 to 1234)"},
	} {
		f := record.Of("group", "name", "ms", record.Lower, c.values...)
		if f.Median != c.median || f.Min != c.min || f.Max != c.max {
			t.Errorf("%v: %v, %v to %v", c.values, f.Median, f.Min, f.Max)
		}
		if got := f.String(); got != c.text {
			t.Errorf("%v: %q, want %q", c.values, got, c.text)
		}
	}
}

func TestMet(t *testing.T) {
	for _, c := range []struct {
		better record.Better
		value  float64
		met    bool
	}{{record.Lower, 9, true}, {record.Lower, 11, false}, {record.Higher, 9, false}, {record.Higher, 11, true}} {
		f := record.Of("g", "n", "", c.better, c.value)
		f.Goal = 10
		if f.Met() != c.met {
			t.Errorf("%v, %s than 10 is better: met %v", c.value, c.better, f.Met())
		}
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	want := &record.Run{Name: "one", Taken: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Command: []string{"-scale"}, Where: record.Where{Commit: "abc", Database: "SQLite 3"}}
	want.Add(record.Of("reads", "p99", "ms", record.Lower, 3, 1, 2))
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := record.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNoRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	for _, text := range []string{
		`{`, `{"format":2}`, `{}`, `[]`,
		`{"format":1,"figures":[{"group":"g","name":"n","median":1,"min":1,"max":1}]}`,
		`{"format":1,"figures":[{"group":"g","name":"n","median":1,"min":2,"max":3,"values":[2,3]}]}`,
		`{"format":1,"figures":[{"median":1,"min":1,"max":1,"values":[1]}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := record.Read(path); !errors.Is(err, record.ErrFormat) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := record.Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestHere(t *testing.T) {
	w := record.Here()
	if w.Cores < 1 || w.Go == "" || w.Kernel == "" {
		t.Errorf("%+v", w)
	}
	if err := w.Binary(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a binary that is not there has a version")
	}
}
