package jsonpatch_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/apply/jsonpatch"
)

// A document of a hundred members that hold lists of small objects, of which a patch changes one.
func benchmarkDocument() []byte {
	var b strings.Builder
	b.WriteString(`{"kind":"Thing","spec":{`)
	for i := range 100 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"member` + strconv.Itoa(i) + `":[{"name":"a","image":"registry.example/images/one:1","ready":true},{"name":"b","count":17,"tags":["x","y"]}]`)
	}
	b.WriteString(`}}`)
	return []byte(b.String())
}

func BenchmarkApply(b *testing.B) {
	document := benchmarkDocument()
	patch, err := jsonpatch.Decode([]byte(`[{"op":"test","path":"/spec/member50/0/name","value":"a"},{"op":"replace","path":"/spec/member50/0/image","value":"other"}]`))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if _, err := patch.Apply(document, budget.New(context.Background(), "too much work")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	document := benchmarkDocument()
	patch := []byte(`{"spec":{"member50":[{"name":"a","image":"other"}],"member7":null}}`)
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if _, err := jsonpatch.Merge(document, patch, budget.New(context.Background(), "too much work")); err != nil {
			b.Fatal(err)
		}
	}
}
