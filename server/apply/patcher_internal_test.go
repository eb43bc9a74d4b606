package apply

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	codecjson "github.com/rowlock/rowlock/codecs/json"
)

// broken is a merge that does not work, and spoils what it is given.
type broken struct{ asked int }

func (b *broken) Merge(_ *budget.Budget, live, patch map[string]any, _ reflect.Type) (map[string]any, error) {
	b.asked++
	clear(live)
	clear(patch)
	panic("no such item")
}

// TestPanicLeadsToTheLibrary: a patch survives a panic in our merge, which then is not asked
// about such objects again.
func TestPanicLeadsToTheLibrary(t *testing.T) {
	var log bytes.Buffer
	var counted []string
	p := New(Config{Count: func(way string) { counted = append(counted, way) }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	b := &broken{}
	p.merger = b
	change := func(current runtime.Object, kind string) metav1.Object {
		patch := &Patch{Type: codecs.PatchStrategic, Body: []byte(`{"metadata":{"finalizers":["x/b"]}}`), JSON: codecjson.Codec{}}
		out, _, err := p.Change(context.Background(), patch, corev1.SchemeGroupVersion.WithKind(kind), current, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out.(metav1.Object)
	}
	for range 3 {
		got := change(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Finalizers: []string{"x/a"}}}, "ConfigMap")
		if fmt.Sprint(got.GetFinalizers()) != "[x/b x/a]" {
			t.Errorf("%v", got.GetFinalizers())
		}
	}
	if got, want := fmt.Sprint(counted), "[failed standard standard standard]"; got != want || b.asked != 1 {
		t.Errorf("counted %s, not %s; asked %d times", got, want, b.asked)
	}
	if n := strings.Count(log.String(), "no such item"); n != 1 || !strings.Contains(log.String(), "ConfigMap") {
		t.Errorf("%d log lines:\n%s", n, &log)
	}
	change(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Finalizers: []string{"x/a"}}}, "Secret")
	if b.asked != 2 {
		t.Errorf("objects of other types are affected: asked %d times", b.asked)
	}
}
