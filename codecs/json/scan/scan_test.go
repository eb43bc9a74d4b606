package scan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

var seeds = []string{
	`{}`, `{"a":1}`, ` { "a" : [ 1 , "]" ] , "b\"" : { "c" : "\\" } } `, `{"kind":"Pod","apiVersion":"v1"}`, `{"a"`, `[1,2]`, `{"a":"\`,
	`{"a":1e5,"b":-0.5,"c":[1,[],{}],"d":[true,false,null]}`, `[01]`, `[1.]`, `[1e]`, `[-]`, `[+1]`, `["\u00"]`, `["\u00zz"]`, `["\ud83d\ude00"]`, `["\x"]`,
	"[\"a\nb\"]", "[\"\x7f\xc3\xa9\"]", "[\"\xff\"]", `[1,]`, `{"a":1,}`, `{,}`, `[}`, `nul`, `nullx`, `"longer than eight bytes"`, `"eight by\"tes"`, ` 1 `, ``, `[[[[]]]]`,
	`{"a":{"a":{"a":1}},"a":2}`,
}

// FuzzScan compares the scanner with encoding/json: it accepts the same texts, and finds the same values and
// strings in them. Functions that trust their text survive any.
func FuzzScan(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return // encoding/json reads values inside of values again
		}
		valid := json.Valid(data)
		if got := scan.Loose.Valid(data, scan.MaxDepth); got != valid {
			t.Fatalf("%q: %v, encoding/json says %v", data, got, valid)
		}
		var tight bytes.Buffer
		isTight := json.Compact(&tight, data) == nil && bytes.Equal(tight.Bytes(), data)
		if got := scan.Tight.Valid(data, scan.MaxDepth); got != isTight {
			t.Fatalf("%q: tight: %v, encoding/json says %v", data, got, isTight)
		}
		for i := range data {
			scan.Skip(data, i)
			scan.String(data, i)
		}
		for at, end := range scan.Tokens(data) {
			if end <= at || end > len(data) {
				t.Fatalf("%q: a token from %d to %d", data, at, end)
			}
		}
		for at := range scan.Brackets(data) {
			if !bytes.ContainsRune([]byte("{}[]"), rune(data[at])) {
				t.Fatalf("%q: a bracket at %d", data, at)
			}
		}
		scan.Lookup(data, "a", "a")
		if !valid {
			return
		}
		depth, containers := shape(t, data)
		if got := scan.Containers(data, -1); got != containers {
			t.Fatalf("%q: %d containers, not %d", data, got, containers)
		}
		if scan.Deeper(data, depth) || depth > 0 && !scan.Deeper(data, depth-1) {
			t.Fatalf("%q: %d levels", data, depth)
		}
		if scan.Loose.Valid(data, depth-1) && depth > 0 || !scan.Loose.Valid(data, depth) {
			t.Fatalf("%q: valid at another depth than %d", data, depth)
		}
		walk(t, data)
	})
}

// shape returns how deep a valid text nests, and how many objects and arrays it has.
func shape(t *testing.T, data []byte) (deepest, containers int) {
	t.Helper()
	depth := 0
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return deepest, containers
		}
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth, containers = depth+1, containers+1
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// walk compares the members and elements of a valid text with the result of encoding/json.
func walk(t *testing.T, data []byte) {
	t.Helper()
	start := scan.Space(data, 0)
	var next [][]byte
	take := func(at int) int {
		end := scan.Loose.Value(data, at, scan.MaxDepth)
		if skipped := scan.Skip(data, at); skipped != end {
			t.Fatalf("%q: the value at %d ends at %d or %d", data, at, end, skipped)
		}
		next = append(next, data[at:end])
		return end
	}
	end := -1
	switch data[start] {
	case '{':
		var want map[string]json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		end = scan.Loose.Members(data, start, func(name scan.Name, at int) (int, bool) {
			end := take(at)
			key := strings.ToValidUTF8(string(name.In(data)), "\ufffd")
			got[key] = string(data[at:end])
			if plain := data[name.At+1 : name.End-1]; (name.Has&scan.Escaped != 0) != bytes.Contains(plain, []byte{'\\'}) || (name.Has&scan.NonASCII != 0) != strings.ContainsFunc(string(plain), func(r rune) bool { return r >= utf8.RuneSelf }) {
				t.Fatalf("%q has %v", plain, name.Has)
			}
			return end, true
		})
		for name, value := range want {
			if utf8.ValidString(name) && !strings.Contains(name, "\ufffd") && got[name] != string(value) {
				t.Fatalf("%q: %q is %q, not %q", data, name, got[name], value)
			}
		}
	case '[':
		var want []json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		end = scan.Loose.Elements(data, start, func(at int) (int, bool) { return take(at), true })
		if len(next) != len(want) {
			t.Fatalf("%q: %d elements, not %d", data, len(next), len(want))
		}
		for i := range want {
			if !bytes.Equal(next[i], want[i]) {
				t.Fatalf("%q: element %d is %q", data, i, next[i])
			}
		}
	default:
		return
	}
	if scan.Space(data, end) != len(data) {
		t.Fatalf("%q ends at %d", data, end)
	}
	for _, value := range next {
		walk(t, value)
	}
}

func TestDepth(t *testing.T) {
	deep := []byte(strings.Repeat("[", scan.MaxDepth) + strings.Repeat("]", scan.MaxDepth))
	if !scan.Loose.Valid(deep, scan.MaxDepth) || !json.Valid(deep) {
		t.Error("too deep, though encoding/json reads it")
	}
	deep = append(append([]byte{'['}, deep...), ']')
	if scan.Loose.Valid(deep, scan.MaxDepth) || json.Valid(deep) {
		t.Error("not too deep, though encoding/json does not read it")
	}
}

func TestLookup(t *testing.T) {
	const text = ` {"a":{"b": [1] ,"b":2,"\u0063":"d"},"e":null} `
	for _, c := range []struct {
		path []string
		want string
	}{
		{nil, text[1:]},
		{[]string{"a", "b"}, "[1]"}, {[]string{"a", "c"}, `"d"`}, {[]string{"e"}, "null"}, {[]string{"e", "f"}, ""}, {[]string{"x"}, ""}, {[]string{"a", "b", "c"}, ""},
	} {
		if got := scan.Lookup([]byte(text), c.path...); string(got) != c.want {
			t.Errorf("%q: %q, not %q", c.path, got, c.want)
		}
	}
}
