package request_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/request"
)

func TestWarn(t *testing.T) {
	h := http.Header{}
	s := request.NewScope(h, time.Time{})
	s.Warn(`unknown field "a"`)
	s.Warn(`unknown field "a"`)
	s.Warn("")
	if got := h.Values("Warning"); len(got) != 1 || got[0] != `299 - "unknown field \"a\""` {
		t.Fatalf("%q", got)
	}
	for i := range 100 {
		s.Warn(strings.Repeat(string(rune('a'+i%26)), 400+i))
	}
	got := h.Values("Warning")
	total := 0
	for _, w := range got {
		if len(w) > 256+len(`299 - ""`) {
			t.Errorf("a warning of %d bytes", len(w))
		}
		total += len(w) - len(`299 - ""`)
	}
	if total >= 4096+256 || len(got) < 15 {
		t.Errorf("%d warnings, %d bytes", len(got), total)
	}
}

// TestWarnALot: those that make it too much are written whole if they are short, and
// one that no header can hold counts for nothing.
func TestWarnALot(t *testing.T) {
	for _, c := range []struct {
		name          string
		length, sent  int
		want, longest int
	}{
		{"just enough", 64, 64, 64, 64},
		{"one too many", 40, 103, 103, 40},
		{"many too many", 40, 200, 103, 40},
		{"long ones", 300, 13, 13, 300},
		{"long ones, one too many", 300, 14, 14, 256},
		{"long ones, many too many", 300, 40, 16, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			s := request.NewScope(h, time.Time{})
			s.Warn("no\nheader")
			for i := range c.sent {
				s.Warn(fmt.Sprintf("%03d", i) + strings.Repeat("x", c.length-3))
			}
			got := h.Values("Warning")
			if len(got) != c.want || len(got[0]) != c.longest+len(`299 - ""`) {
				t.Errorf("%d warnings of %d bytes", len(got), len(got[0]))
			}
		})
	}
}

func TestFromEmpty(t *testing.T) {
	s := request.From(context.Background())
	s.Warn("nowhere")
	s.Annotate("a", "b")
	if s.Annotations != nil {
		t.Error("an annotation is kept although nothing is recorded")
	}
}

// TestWarnUnfit: a response does not hold on to texts that no header can hold, however many there are.
func TestWarnUnfit(t *testing.T) {
	h := http.Header{}
	s := request.NewScope(h, time.Time{})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range 2000 {
		s.Warn(fmt.Sprintf("\t%d", i) + strings.Repeat("x", 64<<10))
	}
	if held := heap() - before; held > 16<<20 {
		t.Errorf("%d MB are held", held>>20)
	}
	s.Warn("this fits")
	if h.Get("Warning") != `299 - "this fits"` {
		t.Error("a text that fits is not a warning")
	}
}
