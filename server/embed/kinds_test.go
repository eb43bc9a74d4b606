package embed_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/server/embed"
)

// Everything has a field of each sort.
type Everything struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Inline
		Count  int               `json:"count"`
		Small  *int32            `json:"small,omitempty"`
		Ratio  float64           `json:"ratio,omitzero"`
		On     bool              `json:"on,omitempty"`
		List   []string          `json:"list"`
		Map    map[string]Inline `json:"map,omitempty"`
		When   metav1.Time       `json:"when,omitempty"`
		For    metav1.Duration   `json:"for,omitempty"`
		Port   intstr.IntOrString
		Size   resource.Quantity    `json:"size,omitempty"`
		Raw    runtime.RawExtension `json:"raw,omitempty"`
		Bytes  []byte               `json:"bytes,omitempty"`
		Any    any                  `json:"any,omitempty"`
		Self   *Node                `json:"self,omitempty"`
		Hidden chan int             `json:"-"`
		hidden chan int
	} `json:"spec"`
}

type Inline struct {
	Text string `json:"text,omitempty"`
}

type Node struct {
	Next []Node `json:"next,omitempty"`
}

// TestSchemas: the schema of a Go type has each field as encoding/json writes it.
func TestSchemas(t *testing.T) {
	_ = Everything{}.Spec.hidden
	d, err := embed.Kind{Group: "g.example", Version: "v1", Object: &Everything{}, Cluster: true}.Definition()
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "everythings.g.example" || d.Spec.Scope != "Cluster" || d.Spec.Versions[0].Subresources != nil {
		t.Errorf("%+v", d)
	}
	got, err := json.MarshalIndent(d.Spec.Versions[0].Schema.OpenAPIV3Schema, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var have, want any
	if json.Unmarshal(got, &have) != nil {
		t.Fatalf("%s", got)
	}
	if err := json.Unmarshal([]byte(`{"type":"object","required":["spec"],"properties":{
		"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},
		"spec":{"type":"object","required":["count","Port"],"properties":{
			"text":{"type":"string"},"count":{"type":"integer","format":"int64"},"small":{"type":"integer","format":"int32"},
			"ratio":{"type":"number"},"on":{"type":"boolean"},"list":{"type":"array","nullable":true,"items":{"type":"string"}},
			"map":{"type":"object","additionalProperties":{"type":"object","properties":{"text":{"type":"string"}}}},
			"when":{"type":"string","format":"date-time"},"for":{"type":"string"},
			"Port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
			"size":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
			"raw":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"bytes":{"type":"string","format":"byte"},
			"any":{"x-kubernetes-preserve-unknown-fields":true},
			"self":{"type":"object","properties":{"next":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}
		}}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
	// The server takes it.
	start(t, embed.Options{Kinds: []embed.Kind{{Group: "g.example", Version: "v1", Object: Everything{}}}})
}

func TestNoKinds(t *testing.T) {
	for want, k := range map[string]embed.Kind{
		"no struct":       {Group: "g.example", Version: "v1", Object: 1},
		"needed":          {Object: Everything{}},
		"has no JSON":     {Group: "g.example", Version: "v1", Object: struct{ C chan int }{}, Name: "C"},
		"strings as keys": {Group: "g.example", Version: "v1", Object: struct{ M map[int]int }{}, Name: "M"},
	} {
		if _, err := k.Definition(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
