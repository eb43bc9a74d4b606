package shard_test

import (
	"fmt"
	"strings"
	"testing"

	apisharding "k8s.io/apimachinery/pkg/sharding"

	"github.com/rowlock/rowlock/server/cache/shard"
)

const whole = "shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')"

func ranges(field string, ends ...string) string {
	var out []string
	for i := 0; i < len(ends); i += 2 {
		out = append(out, fmt.Sprintf("shardRange(object.metadata.%s, '%s', '%s')", field, ends[i], ends[i+1]))
	}
	return strings.Join(out, " || ")
}

// TestSelects compares with the library's selector, which looks at each range.
func TestSelects(t *testing.T) {
	for _, text := range []string{
		whole,
		ranges("uid", "0x0000000000000000", "0x8000000000000000"),
		ranges("uid", "0xc000000000000000", "0x10000000000000000", "0x0000000000000000", "0x4000000000000000"),
		ranges("namespace", "0x4000000000000000", "0xc000000000000000", "0x1000000000000000", "0x5000000000000000", "0x2000000000000000", "0x2000000000000001"),
		ranges("namespace", "0x8000000000000000", "0x10000000000000000", "0x9000000000000000", "0x10000000000000000", "0x0000000000000000", "0x8000000000000000"),
	} {
		s, err := shard.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if s.String() != text || s.OfNamespace() != strings.Contains(text, "namespace") {
			t.Errorf("%s reads as %s, of namespaces: %t", text, s, s.OfNamespace())
		}
		for i := range 200 {
			value := fmt.Sprint("value-", i)
			hash, want := "0x"+apisharding.HashField(value), false
			for _, r := range strings.Split(text, " || ") {
				ends := strings.Split(r, "'")
				want = want || !apisharding.HexLess(hash, ends[1]) && apisharding.HexLess(hash, ends[3])
			}
			if got := s.Selects(value); got != want {
				t.Errorf("%s, %s with hash %s: %t, want %t", text, value, hash, got, want)
			}
		}
	}
}

// TestUnreadable: the texts are those of a stock server.
func TestUnreadable(t *testing.T) {
	for text, want := range map[string]string{
		" ":                      "empty shard selector is not allowed; omit the parameter for unfiltered lists",
		"1":                      "unexpected expression kind 5; expected shardRange() call or || operator",
		whole + " && " + whole:   `unsupported function "_&&_"; only shardRange() and || are allowed`,
		ranges("name", "a", "b"): `unsupported field path "object.metadata.name"; supported: object.metadata.uid, object.metadata.namespace`,
		whole + " || " + ranges("namespace", "0x0000000000000000", "0x10000000000000000"): `all shard ranges must use the same field, got "object.metadata.uid" and "object.metadata.namespace"`,
		ranges("uid", "0x0", "0x1"):                               `hexStart must be a 0x-prefixed 16-digit hex value, got "0x0" (did you mean "0x0000000000000000"?)`,
		ranges("uid", "0x8000000000000000", "0x8000000000000000"): "shard range start 0x8000000000000000 must be less than end 0x8000000000000000",
		strings.Repeat(" ", 16<<10) + "1":                         "it has 16385 bytes, and the most is 16384",
	} {
		if _, err := shard.Parse(text); err == nil || err.Error() != want {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

// BenchmarkParse is the cost of the longest selector.
func BenchmarkParse(b *testing.B) {
	text := whole + strings.Repeat(" || "+whole, (16<<10-len(whole))/(len(whole)+4))
	for b.Loop() {
		if _, err := shard.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
