package objects

import (
	"bytes"
	"strings"
	"testing"
)

// encodedIn is a text as a write has it, and the memory that it was encoded in.
func encodedIn(m Memory, text string) (value, encoded []byte) {
	scratch := append(make([]byte, 0, len(text)+100), text...)
	encoded = scratch
	return m.lend(&scratch), encoded
}

// TestWaysOfMemory: what a way of memory lends, and what becomes of it when it is given back.
func TestWaysOfMemory(t *testing.T) {
	short, long := strings.Repeat("s", 1000), strings.Repeat("l", maxLent+1)
	for _, tc := range []struct {
		memory Memory
		text   string
		own    bool   // the value has memory of its own
		after  string // the value when it has been given back; "" is that it may be another one's
	}{
		{ReusedMemory, short, false, ""},
		{"", short, false, ""},
		{ReusedMemory, long, true, long},
		{StandardMemory, short, true, short},
		{ScrubbedMemory, short, false, strings.Repeat("\xff", len(short))},
		{ScrubbedMemory, long, true, long},
	} {
		value, in := encodedIn(tc.memory, tc.text)
		if string(value) != tc.text {
			t.Errorf("%s: %d bytes are not what was encoded", tc.memory, len(value))
		}
		if own := &value[0] != &in[0]; own != tc.own {
			t.Errorf("%s, %d bytes: memory of its own: %v", tc.memory, len(value), own)
		}
		if tc.memory.release(value); tc.after != "" && string(value) != tc.after {
			t.Errorf("%s: %d bytes are not what they should be when they are given back", tc.memory, len(value))
		}
	}
}

// TestScrubbedTwice: what is given back twice would be two writes' at once.
func TestScrubbedTwice(t *testing.T) {
	value := bytes.Repeat([]byte("v"), 100)
	ScrubbedMemory.release(value)
	defer func() {
		if recover() == nil {
			t.Error("nobody noticed")
		}
	}()
	ScrubbedMemory.release(value)
}
