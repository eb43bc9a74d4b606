package ownership

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
)

// FuzzQuickTree: the JSON reader gives the same tree as the YAML reader, which handles all else.
func FuzzQuickTree(f *testing.F) {
	codec := jsoncodec.New(jsoncodec.Settings{})
	for _, body := range []string{
		appliedDeployment, `{}`, `{"a":-0,"b":9223372036854775807,"c":[[],{}],"d":null}`, "{\n \"a\" :\n1\n}\n", "{\"a\"\n:1}",
		`{"<<":{"a":1},"a":2}`, `{"a":"\u0041\u00ff\b\t\"\\"}`, `{"a":1,"a":2}`, `{"":{"=":"~"}}`, `{"a":[1 , 2 ]}`, `{"y":"no","0x1":1e3}`,
		"{\"a\":\n\n---\n1}", `{"a":"b","c":"# d: e"}`, `{"a":1}#`, "{\"a\":\"%\"}\n",
		`{"` + strings.Repeat(`\u0041`, 200) + `":1}`, `{"` + strings.Repeat("a", 500) + `"` + strings.Repeat(" ", 600) + `:1}`,
		`{"` + strings.Repeat(`\\`, 600) + `":1}`, `{"` + strings.Repeat(`\u0041`, 160) + `"  :1}`, `{"a":"` + strings.Repeat("b ", 2000) + `"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		quick, ok := quickTree(codec, body)
		if !ok {
			return
		}
		slow, err := ReadTree(body)
		if diff := cmp.Diff(slow, quick); err != nil || diff != "" {
			t.Fatalf("%q is read otherwise: %v\n%s", body, err, diff)
		}
	})
}
