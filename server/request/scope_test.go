package request_test

import (
	"context"
	"net/http"
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
	if total > 4096+2 || len(got) < 15 {
		t.Errorf("%d warnings, %d bytes", len(got), total)
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
