package json

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// counted returns a checker that remembers, of balanced texts, and how often it had to walk.
func counted() (check checker, walks *int) {
	walks = new(int)
	return memoized(func(c *checking, i int) int {
		*walks++
		return checkRaw(c, i)
	}), walks
}

func TestCheckerRemembersWhatItAccepted(t *testing.T) {
	check, walks := counted()
	other, otherWalks := counted()
	m := &memory{}
	at := func(check checker, text string, depth int) int {
		data := []byte(text)
		defer func() { // the text is lent
			for i := range data {
				data[i] = '!'
			}
		}()
		return check(&checking{data: data, text: string(data), depth: depth, memory: m}, 0)
	}
	value := `{"` + strings.Repeat("a", rememberLeast) + `":[1,2,3]}`
	for _, tt := range []struct {
		name  string
		check checker
		text  string
		depth int
		walks int // of check so far
		end   int
	}{
		{"first", check, value, 3, 1, len(value)},
		{"again", check, value, 3, 1, len(value)},
		{"with more behind it", check, value + `,"x":`, 2, 1, len(value)},
		{"deeper", check, value, 4, 2, len(value)},
		{"as deep as that", check, value, 4, 2, len(value)},
		{"cut off", check, value[:len(value)-1], 3, 3, -1},
		{"with an error in it", check, strings.Replace(value, "[1", "[1,", 1), 3, 4, -1},
		{"a string", check, `"` + strings.Repeat("b", 100) + `"`, 3, 5, 102},
		{"a string again", check, `"` + strings.Repeat("b", 100) + `"`, 3, 6, 102},
		{"nothing", check, "", 3, 7, -1},
	} {
		if got := at(tt.check, tt.text, tt.depth); got != tt.end || *walks != tt.walks {
			t.Errorf("%s: ends at %d after %d walks, want %d after %d", tt.name, got, *walks, tt.end, tt.walks)
		}
	}
	if at(other, value, 3); *otherWalks != 1 {
		t.Error("what one checker accepted, another takes without a walk")
	}
}

// A memory has a bound, and text that occurs only once is not copied each time.
func TestCheckersMemoryIsBounded(t *testing.T) {
	m := &memory{}
	kept := func() (n int) {
		for i := range m.places {
			for _, v := range m.places[i].values {
				n += cap(v.text)
			}
		}
		return n
	}
	for i := range 600 {
		check, _ := counted()
		for j := range rememberEach {
			data := fmt.Appendf(nil, `{"v":"%d-%d %s"}`, i, j, bytes.Repeat([]byte("x"), rememberMost/2))
			if end := check(&checking{data: data, text: string(data), memory: m}, 0); end != len(data) {
				t.Fatalf("%s is refused", data)
			}
		}
		if n := kept(); n > rememberAll*3/2 {
			t.Fatalf("%d bytes are kept, want at most %d", n, rememberAll)
		}
	}
	check, _ := counted()
	m = &memory{}
	for i := range 10_000 {
		data := fmt.Appendf(nil, `{"never the same":"%050d"}`, i)
		check(&checking{data: data, text: string(data), memory: m}, 0)
	}
	p := &m.places[len(m.places)-1]
	if p.missed != 10_000 || p.next != (rememberOften+10_000/rememberRare)%rememberEach {
		t.Errorf("%d values in a row were not known, the next place is %d", p.missed, p.next)
	}
	long := []byte(`["` + strings.Repeat("x", rememberMost) + `"]`)
	before := m.bytes
	check(&checking{data: long, text: string(long), memory: m}, 0)
	if m.bytes != before {
		t.Error("a long value is kept")
	}
}
