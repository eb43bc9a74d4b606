package ownership_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/schema"
)

// TestOverlay does not merge fields for other managers, nor too many.
func TestOverlay(t *testing.T) {
	schemas := schema.New(kinds.NewCatalogue(builtin.Resources()))
	live := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"a": "1"}}
	tree := func(data map[string]any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}
	}
	merged, err := ownership.Overlay(schemas, live, tree(map[string]any{"b": "2"}))
	if err != nil || fmt.Sprint(merged["data"]) != "map[a:1 b:2]" || len(live.Data) != 1 {
		t.Errorf("%v, %v; live %v", merged, err, live.Data)
	}
	many := map[string]any{}
	for i := range 30_000 {
		many[fmt.Sprint(i)] = ""
	}
	if _, err := ownership.Overlay(schemas, live, tree(many)); err == nil || !strings.Contains(err.Error(), "too many fields stand side by side") {
		t.Error(err)
	}
	if _, err := ownership.Overlay(schemas, live, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": "x"}); err == nil || !strings.HasPrefix(err.Error(), "failed to convert patch object to typed object: ") {
		t.Error(err)
	}
}
