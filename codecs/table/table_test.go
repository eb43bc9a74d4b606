package table_test

import (
	stdjson "encoding/json"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/codecs/table"
)

func TestAge(t *testing.T) {
	check := func(d time.Duration) {
		if got, want := string(table.AppendAge(nil, d)), duration.HumanDuration(d); got != want {
			t.Fatalf("%v: %s, want %s", d, got, want)
		}
	}
	for s := range 3 * 24 * 3600 {
		check(time.Duration(s) * time.Second)
	}
	for h := range 10 * 366 * 24 {
		check(time.Duration(h)*time.Hour - time.Second)
	}
	for ms := -5000; ms < 5000; ms += 7 {
		check(time.Duration(ms) * time.Millisecond)
	}
}

func TestTableEqualsEncoding(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	r := rand.New(rand.NewSource(1))
	columns := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "<x>"}, {Name: "Age", Priority: 1}}
	definitions, err := table.Definitions(columns)
	if err != nil {
		t.Fatal(err)
	}
	for _, include := range []string{"", "Metadata", "Object", "None"} {
		policy, err := table.ParseInclude(include)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			want := &metav1.Table{
				TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"},
				ListMeta:          metav1.ListMeta{ResourceVersion: "5", Continue: "c<"},
				ColumnDefinitions: columns, Rows: []metav1.TableRow{},
			}
			got, err := table.AppendHead(nil, "v1", &want.ListMeta, definitions)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				pod := &corev1.Pod{}
				sample.Fill(r, pod)
				pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
				encoded, err := stdjson.Marshal(pod)
				if err != nil {
					t.Fatal(err)
				}
				made := now.Add(-time.Duration(r.Int63n(1e18) - 2e17))
				age := duration.HumanDuration(now.Sub(made))
				row := metav1.TableRow{Cells: []any{pod.Name, int64(i), true, nil, 1.5, "3 (" + age + " ago) <" + age + ">", age, "a\x00b", "\x00x\x00", map[string]any{"a": []any{"b"}}}}
				cells, err := table.Cells([]any{pod.Name, int64(i), true, nil, 1.5, "3 (" + table.Mark(made) + " ago) <" + table.Mark(made) + ">", table.Mark(made),
					"a\x00b", "\x00x\x00", map[string]any{"a": []any{"b"}}})
				if err != nil {
					t.Fatal(err)
				}
				switch policy {
				case table.Metadata:
					partial := meta.AsPartialObjectMetadata(pod)
					partial.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
					row.Object = runtime.RawExtension{Object: partial}
				case table.Object:
					row.Object = runtime.RawExtension{Object: pod}
				}
				want.Rows = append(want.Rows, row)
				if i > 0 {
					got = append(got, ',')
				}
				object := func(dst []byte) ([]byte, error) { return append(dst, encoded...), nil }
				switch policy {
				case table.Metadata:
					object = func(dst []byte) ([]byte, error) { return json.AppendPartial(dst, "v1", encoded), nil }
				case table.None:
					object = nil
				}
				var conditions []byte
				if i%2 == 1 {
					row := &want.Rows[i]
					row.Conditions = []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue}}
					if conditions, err = stdjson.Marshal(row.Conditions); err != nil {
						t.Fatal(err)
					}
				}
				if got, err = cells.Append(got, now, conditions, object); err != nil {
					t.Fatal(err)
				}
			}
			got = append(got, table.Tail...)
			wanted, err := stdjson.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(wanted), string(got)); diff != "" {
				t.Fatalf("%q: %s", include, diff)
			}
		}
	}
}

func TestInclude(t *testing.T) {
	_, err := table.ParseInclude("Everything")
	if err == nil || err.Error() != `Unable to convert to Table as requested: includeObject: Invalid value: "Everything": must be 'Metadata', 'Object', 'None', or empty` {
		t.Error(err)
	}
}

func FuzzRow(f *testing.F) {
	f.Add("", "x")
	f.Add(table.Mark(time.Unix(5, 5)), "\x00")
	f.Add("\x00\x00\x00", "\x0012\x00 \x00-5\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		row, err := table.Cells([]any{a, b, int64(1)})
		if err != nil {
			t.Fatal(err)
		}
		var cells []any
		if err := stdjson.Unmarshal(row.AppendCells(nil, time.Now()), &cells); err != nil || len(cells) != 3 {
			t.Fatalf("%q: %v", row, err)
		}
	})
}
