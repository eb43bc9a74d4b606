package apply

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	codecjson "github.com/rowlock/rowlock/codecs/json"
)

var (
	things     = schema.GroupVersionKind{Group: "a.example", Version: "v1", Kind: "Thing"}
	treesCodec = codecjson.New(codecjson.Settings{})
)

// settled is a codec that does not change objects.
type settled struct{ codecjson.Codec }

func (settled) Settle(runtime.Object) bool { return true }

// mergeTrees applies a merge patch to an object as JSON, both directly and by its document, and compares the results. It reports
// whether it was done directly.
func mergeTrees(t *testing.T, object, patch string) (direct bool) {
	t.Helper()
	ctx := context.Background()
	current := &unstructured.Unstructured{}
	if !treesCodec.DecodeClean([]byte(object), current) {
		return false
	}
	p := &Patch{Type: codecs.PatchMerge, Body: []byte(patch), Strictness: codecs.Strict, JSON: settled{treesCodec}, Types: treesCodec}
	before := current.DeepCopy()
	want, problems, err := p.changeDocument(ctx, things, current.DeepCopy(), []byte(object))
	got, direct := p.mergeTree(ctx, current, []byte(object))
	if !direct {
		got, gotProblems, gotErr := p.Change(ctx, things, current, []byte(object))
		if fmt.Sprint(err) != fmt.Sprint(gotErr) || !reflect.DeepEqual(problems, gotProblems) || !reflect.DeepEqual(want, got) {
			t.Fatalf("%s of %s: %v %v %v", patch, object, got, gotProblems, gotErr)
		}
		return false
	}
	if err != nil || len(problems) > 0 || !reflect.DeepEqual(want, got) {
		t.Fatalf("%s of %s: %v, want %v %v %v", patch, object, got, want, problems, err)
	}
	if meta, ok := got.(*unstructured.Unstructured).Object["metadata"].(map[string]any); ok {
		for _, value := range meta {
			if value, ok := value.(map[string]any); ok {
				value["new"] = "x"
			}
		}
		meta["new"] = "x"
	}
	if !reflect.DeepEqual(before, current) {
		t.Fatalf("%s: the current object was changed to %v", patch, current)
	}
	return true
}

const liveThing = `{"apiVersion":"a.example/v1","kind":"Thing","metadata":{"name":"x","labels":{"a":"1"}},"spec":{"n":1,"f":1.0,"list":[{"a":null}],"none":null,"deep":{"a":{"b":"c"},"d":{}}},"status":{"nodes":{"a":{"b":[1,2]},"c":"\u003c"}}}`

// TestMergeTree: which merge patches of custom objects are done without their document.
func TestMergeTree(t *testing.T) {
	for patch, want := range map[string]bool{
		`{}`: true,
		`{"status":{"nodes":{"d":{"b":[1,null,{"x":null}],"y":null}}}}`:            true,
		`{"status":{"nodes":{"a":{"b":null,"c":{"x":null,"y":{"z":null}}}}}}`:      true,
		`{"status":{"nodes":{"a":[{"x":null}],"c":{"x":null,"y":[{"z":null}]}}}}`:  true,
		`{"spec":{"list":[{"b":null}],"none":{"a":null},"deep":null,"gone":null}}`: true,
		`{"spec":null,"other":{"a":{"b":null}}}`:                                   true,
		`{"spec":{"n":2.0,"f":1e3,"big":9223372036854775808,"least":-1}}`:          true,
		`{"spec":{"deep":{"a":{"b":{}},"d":null}}}`:                                true,
		`{"metadata":{"labels":{"a":null,"b":"c"},"finalizers":["f"]}}`:            true,
		`{"metadata":null}`:                      true,
		` { "spec" : { "text" : "\u00e9\n" } } `: true,
		`{"kind":"Thing"}`:                       false,
		`{"Apiversion":null}`:                    false,
		`{"spec":{"a":1,"a":2}}`:                 false,
		`{"spec":{"a":"\ud83d\ude00"}}`:          false,
		`{"spec":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`: false,
		`[{"a":null}]`: false,
		`null`:         false,
		`1`:            false,
		`{"spec":`:     false,
		`{"spec":{}}x`: false,
	} {
		if direct := mergeTrees(t, liveThing, patch); direct != want {
			t.Errorf("%s: %v", patch, direct)
		}
	}
}

// TestMergeTreeByChance: random patches of random objects.
func TestMergeTreeByChance(t *testing.T) {
	rnd, direct := rand.New(rand.NewSource(1)), 0
	for range 2000 {
		object := `{"apiVersion":"a.example/v1","kind":"Thing","metadata":` + randomMap(rnd, 2) + `,"spec":` + randomMap(rnd, 4) + `}`
		if mergeTrees(t, object, `{"spec":`+randomMap(rnd, 4)+`,"metadata":`+randomMap(rnd, 2)+`}`) {
			direct++
		}
	}
	if direct < 1000 {
		t.Errorf("%d of 2000 patches were done directly", direct)
	}
}

func randomMap(rnd *rand.Rand, depth int) string {
	var members []string
	for _, name := range []string{"a", "b", "c", "d"} {
		if rnd.Intn(2) == 0 {
			members = append(members, `"`+name+`":`+randomValue(rnd, depth))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func randomValue(rnd *rand.Rand, depth int) string {
	switch kind := rnd.Intn(8); {
	case kind < 3 && depth > 0:
		return randomMap(rnd, depth-1)
	case kind == 3 && depth > 0:
		return "[" + randomValue(rnd, depth-1) + "," + randomValue(rnd, depth-1) + "]"
	case kind < 6:
		return "null"
	}
	return []string{"1", "1.5", "2.0", "true", `"text"`, `""`}[rnd.Intn(6)]
}

func FuzzMergeTree(f *testing.F) {
	f.Add(liveThing, `{"status":{"nodes":{"a":{"b":null,"c":{"x":null}}}}}`)
	f.Add(`{"a":[1,{"b":null}]}`, `{"a":{"b":[null]},"c":"\u003c"}`)
	f.Fuzz(func(t *testing.T, object, patch string) { mergeTrees(t, object, patch) })
}

// TestMergeTreeKeepsBounds: a patch may not remove the text that makes many small objects of a document tolerable, and all
// work is bounded.
func TestMergeTreeKeepsBounds(t *testing.T) {
	const small = 300_000
	object := `{"apiVersion":"a.example/v1","kind":"Thing","metadata":{"name":"x"},"spec":{"text":"` + strings.Repeat("x", 10*small) + `","list":[` + strings.Repeat(`{"a":1},`, small) + `{}]}}`
	current := &unstructured.Unstructured{}
	if !treesCodec.DecodeClean([]byte(object), current) {
		t.Fatal("it cannot be read")
	}
	change := func(ctx context.Context, patch string) error {
		p := &Patch{Type: codecs.PatchMerge, Body: []byte(patch), JSON: settled{treesCodec}, Types: treesCodec}
		_, _, err := p.Change(ctx, things, current, []byte(object))
		return err
	}
	if err := change(t.Context(), `{"spec":{"n":1}}`); err != nil {
		t.Error(err)
	}
	for _, patch := range []string{`{"spec":{"text":null}}`, `{"spec":{"text":""}}`, `{"spec":{"text":{"a":1}}}`} {
		if err := change(t.Context(), patch); !apierrors.IsRequestEntityTooLargeError(err) {
			t.Errorf("%s: %v", patch, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := change(ctx, `{"spec":{"n":1}}`); !errors.Is(err, context.Canceled) {
		t.Errorf("after the client left: %v", err)
	}
}
