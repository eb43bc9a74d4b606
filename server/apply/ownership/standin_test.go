package ownership_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	jsoniter "github.com/json-iterator/go"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

// The replacement of github.com/json-iterator/go (codecs/jsoniterator) is compared with encoding/json.

func read(text string) (any, error) {
	pool := jsoniter.NewIterator(jsoniter.ConfigCompatibleWithStandardLibrary).Pool()
	i := pool.BorrowIterator([]byte(text))
	defer pool.ReturnIterator(i)
	v := i.Read()
	return v, i.Error
}

func written(v any) (string, error) {
	pool := jsoniter.NewStream(jsoniter.ConfigCompatibleWithStandardLibrary, nil, 16).Pool()
	var out bytes.Buffer
	s := pool.BorrowStream(&out)
	defer pool.ReturnStream(s)
	s.WriteVal(v)
	err := s.Flush()
	return out.String(), err
}

var texts = []string{
	`null`, `true`, `false`, `0`, `-0.5e+3`, `12345678901234567890`, `1e400`, `""`, `"a\"\\\/\b\f\n\r\tz"`, `"ä€𝄞"`, `"\u00e4\ud834\udd1e\ud834x\ud834\u0041\udd1e"`,
	`{}`, `[]`, ` { "a" : [ 1 , {"b":null} ] , "a" : 2 } `, `{"a":1,}`, `{"a"}`, `{a:1}`, `[1,]`, `[1 2]`, `"open`, `"\x"`, `"\u12g4"`, `"\u1"`, "\"a\nb\"", `tru`, `nul`, `-`, `1.`, `1e`, `.5`,
	`{"a":{"b":["c"]}`, ``, `  `, `"\`, `"\ud834\`, `{"":0}`, strings.Repeat("[", 9999) + strings.Repeat("]", 9999), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
}

// compare reads a text with both implementations. What package json refuses for its invalid UTF-8 alone, or reads as
// replacement characters, is of no interest: the API reads it before.
func compare(t *testing.T, text string) {
	var want any
	wrong := json.Unmarshal([]byte(text), &want)
	got, err := read(text)
	if wrong == nil && (err != nil || !reflect.DeepEqual(got, want)) {
		t.Errorf("%.80q: %#v, %v; want %#v", text, got, err, want)
	}
	if wrong == nil {
		return
	}
	// Text after a value is ignored; otherwise both refuse.
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&want); err != nil && got != nil {
		if _, err = read(text); err == nil {
			t.Errorf("%.80q is read as %#v, package json: %v", text, got, wrong)
		}
	}
}

func TestReadAsPackageJSON(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		compare(t, text)
	}
}

func FuzzReadAsPackageJSON(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ToValidUTF8(text, "") == text {
			compare(t, text)
		}
	})
}

func TestWriteAsPackageJSON(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		nil, true, int64(-5), 0.1, 1e21, "", "<&>\u2028\u2029 \x00\x1f\x7f \"\\\n\r\t ä \xff z", []any{int64(1), "a"},
		map[string]any{"b": 1.5, "a": []any{nil, map[string]any{}}},
	} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := written(v)
		if err != nil || got != string(want) {
			t.Errorf("%#v: %s, %v; want %s", v, got, err, want)
		}
	}
	if got, err := written(make(chan int)); err == nil {
		t.Errorf("a channel is written as %s", got)
	}
}

// TestFieldSets: a set is written back byte by byte; an invalid one is refused.
func TestFieldSets(t *testing.T) {
	t.Parallel()
	const text = `{"f:metadata":{"f:labels":{".":{},"f:a\"\\<&>":{}}},"f:spec":{"f:list":{"i:3":{},"k:{\"name\":\"x\\u003c\",\"port\":80}":{".":{},"f:port":{}},` +
		`"v:\"ä\"":{},"v:1.5":{},"v:true":{},"v:null":{}}}}`
	var set fieldpath.Set
	if err := set.FromJSON(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	var again fieldpath.Set
	got, err := set.ToJSON()
	if err != nil || again.FromJSON(bytes.NewReader(got)) != nil || !again.Equals(&set) || set.Size() != 9 {
		t.Errorf("%d fields: %s, %v", set.Size(), got, err)
	}
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(text), &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("written\n%s\nread\n%s", got, text)
	}
	for _, bad := range []string{`{"f:a":`, `{"f:a":[]}`, `{"k:{\"a\":}":{}}`, `{"i:x":{}}`, `[]`, `1`, ``, `{"f:a":{} "f:b":{}}`} {
		if err := set.FromJSON(strings.NewReader(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
	for _, none := range []string{`{}`, `null`, `{"x:unknown":{"f:a":{}}}`} {
		if err := set.FromJSON(strings.NewReader(none)); err != nil || !set.Empty() {
			t.Errorf("%s: %v, %d fields", none, err, set.Size())
		}
	}
	v, err := value.FromJSON([]byte(`{"a":[1,"b"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := value.ToJSON(v); err != nil || string(b) != `{"a":[1,"b"]}` {
		t.Errorf("%s, %v", b, err)
	}
}
