package json_test

import (
	stdjson "encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
)

// TestTreesAreEncodedAsByTheLibrary compares trees of plain values, and unstructured objects, with the output
// of encoding/json.
func TestTreesAreEncodedAsByTheLibrary(t *testing.T) {
	codec := jsoncodec.New(jsoncodec.Settings{})
	rng := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "plain", "<a href=\"x\">&</a>", "\u2028 \u2029 \x00 \x1f \x7f", "broken \xff\xc0 text", "größe 😀", strings.Repeat("long ", 100), "a\\b/c\td\ne"}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := rng.IntN(9); {
		case n == 0:
			return nil
		case n == 1:
			return rng.IntN(2) == 0
		case n == 2:
			return rng.Int64() - rng.Int64()
		case n == 3:
			return []float64{0, math.Copysign(0, -1), 1.5, 1e21, 1e-7, 123456789.125, math.MaxFloat64, 5e-324}[rng.IntN(8)]
		case n <= 5 || depth == 0:
			return texts[rng.IntN(len(texts))]
		case n == 6:
			return []any(nil)
		case n == 7:
			list := []any{}
			for range rng.IntN(5) {
				list = append(list, value(depth-1))
			}
			return list
		}
		tree := map[string]any{}
		for range rng.IntN(30) {
			tree[texts[rng.IntN(len(texts))]+fmt.Sprint(rng.IntN(40))] = value(depth - 1)
		}
		return tree
	}
	for range 2000 {
		tree := map[string]any{"kind": "X", "value": value(4), "nothing": map[string]any(nil)}
		want, err := stdjson.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{tree, &unstructured.Unstructured{Object: tree}} {
			if got, err := codec.Append([]byte("before "), v); err != nil || string(got) != "before "+string(want) {
				t.Fatalf("%T: %v\n%s\n%s", v, err, got, want)
			}
		}
	}
	for _, v := range []any{map[string]any(nil), (*unstructured.Unstructured)(nil), &unstructured.Unstructured{}, map[string]any{"n": math.NaN()}, map[string]any{"i": 7, "b": []byte("x"), "m": map[string]string{"a": "b"}}} {
		want, wantErr := stdjson.Marshal(v)
		got, err := codec.Append(nil, v)
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != string(want) {
			t.Errorf("%T %v: %s, %v; want %s, %v", v, v, got, err, want, wantErr)
		}
	}
}
