package columns_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/kinds/columns"
)

func TestOf(t *testing.T) {
	of := columns.Of(func(m *corev1.ConfigMap, now time.Time) []any {
		return []any{m.Name, int64(len(m.Data)), columns.Since(m.CreationTimestamp, now)}
	}, columns.Name(), columns.Number("Data", "how many"), columns.Age(), columns.Wide(columns.Flag("Immutable", "whether")))
	made := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m", CreationTimestamp: metav1.NewTime(made)}, Data: map[string]string{"k": "v"}}
	if got, want := of.Cells(m, made.Add(3*time.Minute)), []any{"m", int64(1), "3m"}; !cmp.Equal(got, want) {
		t.Errorf("cells: %v, want %v", got, want)
	}
	if got := of.Cells(&corev1.Secret{}, made); got != nil {
		t.Errorf("cells of another kind: %v", got)
	}
	var shown []string
	for _, d := range of.Definitions {
		if d.Description == "" {
			t.Errorf("%s has no description", d.Name)
		}
		shown = append(shown, d.Name+":"+d.Type+":"+string('0'+rune(d.Priority)))
	}
	if want := []string{"Name:string:0", "Data:integer:0", "Age:string:0", "Immutable:boolean:1"}; !cmp.Equal(shown, want) {
		t.Errorf("columns: %q, want %q", shown, want)
	}
	for _, d := range columns.Containers() {
		if d.Priority != 1 {
			t.Errorf("%s is shown to all users", d.Name)
		}
	}
}

func TestWords(t *testing.T) {
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	names, images := columns.ContainerCells([]corev1.Container{{Name: "a", Image: "x:1"}, {Name: "b", Image: "y"}})
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Likes"}}}
	for name, c := range map[string][2]string{
		"no time":                      {columns.Since(metav1.Time{}, at), "<unknown>"},
		"an age":                       {columns.Since(metav1.NewTime(at), at.Add(49*time.Hour)), "2d1h"},
		"an age to be filled in":       {columns.Since(metav1.NewTime(at), time.Time{}), table.Mark(at)},
		"names":                        {names, "a,b"},
		"images":                       {images, "x:1,y"},
		"a selector":                   {columns.Selector(&metav1.LabelSelector{MatchLabels: map[string]string{"b": "2", "a": "1"}}), "a=1,b=2"},
		"a selector that cannot be":    {columns.Selector(bad), "<invalid>"},
		"a selector of everything":     {columns.LongSelector(&metav1.LabelSelector{}), "<none>"},
		"a selector, as it is written": {columns.LongSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}}), "a=1"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %q, want %q", name, c[0], c[1])
		}
	}
}
