package json_test

import (
	"bytes"
	stdjson "encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/codecs/json"
)

// FuzzIndent: down to the last level that is widened the pretty form is that of encoding/json, in whatever
// pieces the value comes, and it is always the same value.
func FuzzIndent(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,{},[],"x\"}\\"],"b":{"c":null}}`, ` [ 1 , 2 ] `, `""`, `{}`, `[[[]]]`, `{"a" : "\u0041"}`,
		strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70), strings.Repeat(`{"a":`, 64) + `1` + strings.Repeat(`}`, 64),
	} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		if !stdjson.Valid(data) || piece <= 0 {
			return
		}
		var out bytes.Buffer
		in := json.NewIndenter(&out)
		for rest := data; len(rest) > 0; {
			n := min(piece, len(rest))
			if _, err := in.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		whole, err := json.Indent(nil, data)
		if err != nil || !bytes.Equal(whole, out.Bytes()) {
			t.Fatalf("in pieces: %q, whole: %q, %v", out.Bytes(), whole, err)
		}
		var same, want bytes.Buffer
		if err := stdjson.Compact(&same, whole); err != nil {
			t.Fatal(err)
		}
		if err := stdjson.Compact(&want, data); err != nil || !bytes.Equal(same.Bytes(), want.Bytes()) {
			t.Fatalf("%q became %q", data, whole)
		}
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) <= json.MaxIndent {
			want.Reset()
			if err := stdjson.Indent(&want, data, "", "  "); err != nil || strings.TrimRight(want.String(), " \t\r\n") != string(whole) {
				t.Fatalf("%q, not %q", whole, want.Bytes())
			}
		}
	})
}

// counted counts the bytes written, in all and the most at once.
type counted struct{ all, most int }

func (c *counted) Write(p []byte) (int, error) {
	c.all += len(p)
	c.most = max(c.most, len(p))
	return len(p), nil
}

// TestIndentDeep: a value that nests deep becomes larger by a factor, not by its depth, and
// is written in pieces.
func TestIndentDeep(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 9000) + `1` + strings.Repeat(`}`, 9000)
	var got counted
	in := json.NewIndenter(&got)
	if _, err := io.WriteString(in, "["+deep+","+deep+"]"); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if limit := 2 * len(deep) * (2*json.MaxIndent + 2); got.all > limit || got.all < 4*len(deep) {
		t.Errorf("%d bytes became %d, the limit is %d", 2*len(deep), got.all, limit)
	}
	if got.most > 1<<17 {
		t.Errorf("%d bytes at once", got.most)
	}
}
