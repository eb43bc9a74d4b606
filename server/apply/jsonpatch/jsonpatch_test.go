package jsonpatch_test

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	librarypatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/apply/jsonpatch"
)

var errPanic = errors.New("panic")

// library applies a patch with the library.
func library(doc, patch string) (out []byte, err error) {
	ops, err := librarypatch.DecodePatch([]byte(patch))
	if err != nil {
		return nil, err
	}
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return ops.Apply([]byte(doc))
}

const sample = `{"a":1, "b":[1,2,{"c":"<x>"},null,[]], "n":null,"o":{"z":1.0,"a":{"b":"\u0041é"}},"":{"~":{"/":1}},"e":{}}`

// FuzzPatch: the result and the errors equal those of the library.
func FuzzPatch(f *testing.F) {
	for _, patch := range []string{
		`[{"op":"add","path":"/b/0","value":{"x": [1 , 2]}},{"op":"remove","path":"/b/-1"}]`,
		`[{"op":"add","path":"/b/-","value":7},{"op":"add","path":"/b/-1","value":8},{"op":"add","path":"/b/9","value":8}]`,
		`[{"op":"move","from":"/b","path":"/o/b"},{"op":"copy","from":"/o","path":"/p"},{"op":"replace","path":"/p/b/0","value":null}]`,
		`[{"op":"test","path":"/o","value":{"a":{"b":"\u0041é"},"z":1.0}}]`, `[{"op":"test","path":"/o/z","value":1}]`,
		`[{"op":"test","path":"/nothing"}]`, `[{"op":"test","path":"/nothing","value":null}]`, `[{"op":"test","path":"/n","value":null}]`,
		`[{"op":"add","path":"/n","value":null},{"op":"add","path":"/n/a","value":1}]`, `[{"op":"add","path":"/v"}]`,
		`[{"op":"replace","path":"","value":{"x":1}},{"op":"add","path":"/y","value":[]}]`, `[{"op":"replace","path":"","value":5}]`, `[{"op":"replace","path":""}]`,
		`[{"op":"test","path":"","value":{"a":1}}]`, `[{"op":"test","path":""}]`, `[{"op":"test","path":"","value":null}]`,
		`[{"op":"test","path":"/~0","value":1},{"op":"remove","path":"/"}]`, `[{"op":"test","path":"//~0/~1","value":1}]`,
		`[{"op":"remove","path":"/b/9"}]`, `[{"op":"remove","path":"/q"}]`, `[{"op":"remove","path":"/a/b"}]`, `[{"op":"add","path":"","value":1}]`,
		`[{"op":"move","path":"/x"}]`, `[{"op":"copy","from":"/a"}]`, `[{"op":"move","from":"/a"}]`, `[{"op":"copy","from":"/b/x","path":"/y"}]`, `[{"op":"copy","from":"/q","path":"/y"}]`, `[{"op":"what"}]`, `[{}]`, `[null]`,
		`[{"op":"test","path":"/b","value":[1,2,{"c":"<x>"},null,[]]}]`, `[{"op":"test","path":"/e","value":[]}]`, `[{"op":"move","from":"/o","path":"/o/a/x"}]`,
		`[{"op":"replace","path":"/b/-1","value":"\u2028 & "}]`, `[{"op":"replace","path":"/b/7","value":1}]`, `[{"op":"add","path":"/a"},{"op":"test","path":"/a","value":null}]`,
	} {
		f.Add(sample, patch)
	}
	f.Fuzz(func(t *testing.T, doc, patch string) {
		if !stdjson.Valid([]byte(doc)) || len(doc) == 0 || doc[0] != '{' {
			return
		}
		want, wantErr := library(doc, patch)
		ops, err := jsonpatch.Decode([]byte(patch))
		var got []byte
		if err == nil {
			got, err = ops.Apply([]byte(doc), nil)
		}
		if errors.Is(wantErr, errPanic) || newer(patch) {
			return // anything is better
		}
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("%s\n%s\ngot  %s %v\nwant %s %v", doc, patch, got, err, want, wantErr)
		}
		if err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("%s\n%s\ngot  %v\nwant %v", doc, patch, err, wantErr)
		}
	})
}

// newer reports whether newer releases of the library may treat a patch differently than that of release 1.32: they do not
// panic on a test for an absent value, and refuse to replace the whole document with a scalar.
func newer(patch string) bool {
	var ops []map[string]any
	if stdjson.Unmarshal([]byte(patch), &ops) != nil {
		return false
	}
	return slices.ContainsFunc(ops, func(op map[string]any) bool {
		value, has := op["value"]
		switch value.(type) {
		case map[string]any, []any:
			return false
		}
		return op["op"] == "test" && !has || op["op"] == "replace" && op["path"] == ""
	})
}

// TestScalarForAll: a scalar in the place of the whole document changes nothing, as in the library of release 1.32.
func TestScalarForAll(t *testing.T) {
	const doc = `{"a":1,"b":[{"c":null}]}`
	for _, value := range []string{"5", `"x"`, "true"} {
		ops, err := jsonpatch.Decode([]byte(`[{"op":"replace","path":"","value":` + value + `}]`))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ops.Apply([]byte(doc), nil); err != nil || string(got) != doc {
			t.Errorf("%s: %s, %v", value, got, err)
		}
	}
}

// panicsNoMore are patches that newer releases of the library do not panic on.
var panicsNoMore = map[string]bool{
	`[{"op":"test","path":"/nothing"}]`:                                            true,
	`[{"op":"add","path":"/n","value":null},{"op":"add","path":"/n/a","value":1}]`: true,
}

// TestWherePanics: patches on which the library panics return an error, or the right result.
func TestWherePanics(t *testing.T) {
	for patch, want := range map[string]string{
		`[{"op":"test","path":"/nothing"}]`: "testing value /nothing failed: test failed",
		`[{"op":"test","path":""}]`:         "testing value  failed: test failed",
		`[{"op":"add","path":"/n","value":null},{"op":"add","path":"/n/a","value":1}]`: `add operation does not apply: doc is missing path: "/n/a": missing value`,
		`[{"op":"replace","path":""}]`:                                  "replace operation without a value: missing value",
		`[{"op":"test","path":"/b","value":[1,2,{"c":"<x>"},null,[]]}]`: "",
		`[{"op":"test","path":"/b","value":[1,2,{"c":"<x>"},{},[]]}]`:   "testing value /b failed: test failed",
	} {
		if _, err := library(sample, patch); !errors.Is(err, errPanic) && !panicsNoMore[patch] {
			t.Errorf("%s does not make the library panic: %v", patch, err)
		}
		ops, err := jsonpatch.Decode([]byte(patch))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := ops.Apply([]byte(sample), nil); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, not %q", patch, got, want)
		}
	}
}

// FuzzMerge: a merge patch makes of a document what the library makes.
func FuzzMerge(f *testing.F) {
	for _, patch := range []string{
		`{"a":null,"b":[{"x":null},null],"o":{"a":{"b":null,"c":{"d":null}}}}`, `{"o":[1 , {"y":null}]}`, `{"a":{"x":null,"y":[{"z":null}]}}`,
		`[{"a":null},null,1]`, `null`, `5`, `{`, `{"o":{"a":{"b":{"c":1}}},"o":{"z":null}}`, `{"n":{"x":null},"e":null}`, ` {"<":"&\u2028"} `, `{"\u0061":2}`,
	} {
		f.Add(sample, patch)
	}
	f.Fuzz(func(t *testing.T, doc, patch string) {
		if !stdjson.Valid([]byte(doc)) || len(doc) == 0 || doc[0] != '{' {
			return
		}
		want, wantErr := librarypatch.MergePatch([]byte(doc), []byte(patch))
		got, err := jsonpatch.Merge([]byte(doc), []byte(patch), nil)
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("%s\n%s\ngot  %s %v\nwant %s %v", doc, patch, got, err, want, wantErr)
		}
	})
}

const steps = 1 << 40

// spent returns how much work a patch of a document is.
func spent(t *testing.T, doc, patch string, merge bool) int64 {
	t.Helper()
	b := budget.Of(context.Background(), "the patch", steps)
	var err error
	if merge {
		_, err = jsonpatch.Merge([]byte(doc), []byte(patch), b)
	} else {
		var ops jsonpatch.Patch
		if ops, err = jsonpatch.Decode([]byte(patch)); err == nil {
			_, err = ops.Apply([]byte(doc), b)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Spent(steps)
}

func nested(depth int, inner string) string {
	return strings.Repeat(`{"a":`, depth) + inner + strings.Repeat(`}`, depth)
}

// TestWork: work grows with the sizes of the document and of the patch, not with their product.
func TestWork(t *testing.T) {
	n := 9000
	if got := spent(t, nested(n, "1"), nested(n, `2`), true); got > int64(10*n) {
		t.Errorf("merging %d levels took %d steps", n, got)
	}
	doc := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 700000), ",") + `]}`
	moves := "[" + strings.TrimSuffix(strings.Repeat(`{"op":"move","from":"/l/0","path":"/l/1"},`, 10000), ",") + "]"
	if got := spent(t, doc, moves, false); got > budget.Work {
		t.Errorf("10,000 moves in a list of 700,000 took %d steps", got)
	}
	tests := "[" + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/l/-1","value":1},`, 10000), ",") + "]"
	if got := spent(t, doc, tests, false); got > 2000000 {
		t.Errorf("10,000 tests took %d steps", got)
	}
}

// TestBudget: work ends with its budget, and with the request.
func TestBudget(t *testing.T) {
	doc, patch := nested(9000, "1"), nested(9000, "2")
	if _, err := jsonpatch.Merge([]byte(doc), []byte(patch), budget.Of(context.Background(), "the merge patch", 100)); err == nil || !strings.Contains(err.Error(), "the merge patch needs too much work") {
		t.Errorf("a spent budget: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := jsonpatch.Merge([]byte(doc), []byte(patch), budget.New(ctx, "the merge patch")); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that has ended: %v", err)
	}
	ops, err := jsonpatch.Decode([]byte(`[{"op":"add","path":"/x","value":` + patch + `}]`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ops.Apply([]byte(doc), budget.New(ctx, "the JSON patch")); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that has ended: %v", err)
	}
}

// TestCopies: the bytes that copies add to a document have a limit.
func TestCopies(t *testing.T) {
	var ops []string
	for i := range 60 {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"/a","path":"/a/k%d"}`, i))
	}
	p, err := jsonpatch.Decode([]byte("[" + strings.Join(ops, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply([]byte(`{"a":{"b":"`+strings.Repeat("x", 1000)+`"}}`), nil); err == nil || !strings.Contains(err.Error(), "accumulated size") {
		t.Errorf("a document that doubles sixty times: %v", err)
	}
}

// TestPatchDepth: moves nest lists deeper than the patch and the document do. The result has no more levels than a decoder reads.
func TestPatchDepth(t *testing.T) {
	const levels, rounds = 6_000, 2
	ops := []string{
		fmt.Sprintf(`{"op":"add","path":"/p","value":%s%s}`, strings.Repeat("[", levels), strings.Repeat("]", levels)),
		`{"op":"add","path":"/c","value":[]}`,
	}
	for range rounds {
		ops = append(ops, `{"op":"copy","from":"/p","path":"/q"}`, fmt.Sprintf(`{"op":"move","from":"/c","path":"/q%s/-"}`, strings.Repeat("/0", levels-1)),
			`{"op":"move","from":"/q","path":"/c"}`)
	}
	apply := func(ops ...string) ([]byte, error) {
		text := "[" + strings.Join(ops, ",") + "]"
		if len(text) > budget.DefaultBody {
			t.Fatalf("no body has %d bytes", len(text))
		}
		patch, err := jsonpatch.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return patch.Apply([]byte(`{"a":1}`), budget.New(t.Context(), "the JSON patch"))
	}
	if out, err := apply(ops...); err == nil || err.Error() != "exceeded max depth" {
		t.Errorf("%d bytes and %v", len(out), err)
	}
	if out, err := apply(append(ops, `{"op":"copy","from":"/c","path":"/d"}`)...); err == nil || err.Error() != "exceeded max depth" {
		t.Errorf("%d bytes and %v for a copy", len(out), err)
	}
	if out, err := apply(append(ops, `{"op":"remove","path":"/c"}`)...); err != nil || len(out) != 2*levels+len(`{"a":1,"p":}`) {
		t.Errorf("%d bytes and %v where nothing is deep in the end", len(out), err)
	}
}
