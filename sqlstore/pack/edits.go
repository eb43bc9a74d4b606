package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// A text is stored as its differences from the base, from beginning to end, as a list in JSON: a number
// copies that many characters, a negative one skips them; a string replaces as many characters as it has; a
// string in brackets is inserted. The rest is copied. So a changed time costs its digits and a number.

// same is the number of equal characters from which a copy is shorter.
const same = 12

// searched is the longest base in which pieces are searched: no pack begins with a longer base to which
// others refer, and the table of its pieces takes a hundred bytes for each.
const searched = 2 * MaxBytes

// nearby bounds the search next to a change of one length before the index is used.
const nearby = 64

// character is a byte of a text that is ASCII, or a rune.
type character interface{ byte | rune }

// base is a text that others refer to. It finds where its pieces are.
type base[C character] struct {
	text  []C
	where map[uint64][]int32 // positions of pieces, made when they are needed
}

func hash[C character](piece []C) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range piece[:same] {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// find returns the first position at or after from where a piece occurs, or -1.
func (b *base[C]) find(piece []C, from int) int {
	if len(b.text) > searched {
		return -1
	}
	if b.where == nil {
		b.where = make(map[uint64][]int32, len(b.text))
		for i := range len(b.text) - same + 1 {
			h := hash(b.text[i:])
			if at := b.where[h]; len(at) < 16 { // of repeated pieces, only the first places
				b.where[h] = append(at, int32(i))
			}
		}
	}
	for _, at := range b.where[hash(piece)] {
		if int(at) >= from && agree(b.text[at:], piece) >= same {
			return int(at)
		}
	}
	return -1
}

// agree returns the length of the common prefix of two texts.
func agree[C character](a, b []C) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// edits appends the list that makes text of the base.
func (b *base[C]) edits(out []byte, text []C) []byte {
	out = append(out, '[')
	copied, i, j := 0, 0, 0
	add := func(op func([]byte) []byte) {
		if copied > 0 {
			out = append(strconv.AppendInt(out, int64(copied), 10), ',')
			copied = 0
		}
		out = append(op(out), ',')
	}
	for {
		n := agree(b.text[i:], text[j:])
		copied, i, j = copied+n, i+n, j+n
		if i == len(b.text) && j == len(text) {
			break
		}
		left, taken := b.apart(i, text, j)
		replaced := min(left, taken)
		if replaced > 0 {
			add(func(out []byte) []byte { return appendString(out, string(runes(text[j:j+replaced]))) })
		}
		if taken > replaced {
			add(func(out []byte) []byte {
				return append(appendString(append(out, '['), string(runes(text[j+replaced:j+taken]))), ']')
			})
		}
		if left > replaced {
			add(func(out []byte) []byte { return strconv.AppendInt(out, int64(replaced-left), 10) })
		}
		i, j = i+left, j+taken
	}
	return append(bytes.TrimSuffix(out, []byte(",")), ']')
}

func runes[C character](text []C) []rune {
	out := make([]rune, len(text))
	for i, c := range text {
		out[i] = rune(c)
	}
	return out
}

// apart returns how much of the base and of the text to skip until they agree again.
func (b *base[C]) apart(i int, text []C, j int) (left, taken int) {
	restBase, restText := len(b.text)-i, len(text)-j
	for k := 1; k <= min(nearby, restBase, restText); k++ {
		n := agree(b.text[i+k:], text[j+k:])
		if n >= same || k+n == restBase && k+n == restText {
			return k, k
		}
	}
	for k := 0; k+same <= restText; k++ {
		if at := b.find(text[j+k:], i); at >= 0 {
			return at - i, k
		}
	}
	return restBase, restText
}

var errEdits = errors.New("a list of edits does not fit its base")

// apply makes a text of the base and a list of edits.
func apply(base string, list []byte) ([]byte, error) {
	var ops []json.RawMessage
	if err := json.Unmarshal(list, &ops); err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(base)+64)
	rest, plain := base, isASCII(base)
	take := func(n int) (string, error) {
		if n < 0 || n > len(rest) { // a character has a byte at least
			return "", errEdits
		}
		end := n
		if !plain {
			for end = 0; n > 0 && end < len(rest); n-- {
				_, size := utf8.DecodeRuneInString(rest[end:])
				end += size
			}
			if n > 0 {
				return "", errEdits
			}
		}
		piece := rest[:end]
		rest = rest[end:]
		return piece, nil
	}
	for _, op := range ops {
		var err error
		if out, err = applyOne(out, op, take); err != nil {
			return nil, err
		}
	}
	return append(out, rest...), nil
}

func applyOne(out []byte, op json.RawMessage, take func(int) (string, error)) ([]byte, error) {
	switch op[0] {
	case '"':
		var s string
		if err := json.Unmarshal(op, &s); err != nil {
			return nil, err
		}
		_, err := take(utf8.RuneCountInString(s))
		return append(out, s...), err
	case '[':
		var s [1]string
		err := json.Unmarshal(op, &s)
		return append(out, s[0]...), err
	}
	n, err := strconv.Atoi(string(op))
	if err != nil {
		return nil, err
	}
	piece, err := take(max(n, -n))
	if n < 0 {
		piece = ""
	}
	return append(out, piece...), err
}

func isASCII[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendString appends a text as JSON.
func appendString(out []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		return append(append(append(out, '"'), s...), '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // text cannot fail
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
