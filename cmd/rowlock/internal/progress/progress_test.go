package progress_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/progress"
)

// TestElsewhere: without a terminal there is a line each half minute, and none for short work.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := progress.New(&out, "verifying", "rows")
		l.Total(200)
		for n := range int64(91) {
			l.Show(n)
			time.Sleep(time.Second)
		}
		l.End()
		want := "verifying: 30 of 200 rows (15 %)\nverifying: 60 of 200 rows (30 %)\nverifying: 90 of 200 rows (45 %)\n"
		if out.String() != want {
			t.Errorf("%q, want %q", &out, want)
		}
		out.Reset()
		l = progress.New(&out, "reading", "objects")
		l.AtLeast(20)
		for _, n := range []int64{10, 30} {
			time.Sleep(time.Minute)
			l.Show(n)
		}
		if want := "reading: 10 of at least 20 objects\nreading: 30 objects\n"; out.String() != want {
			t.Errorf("where there may be more: %q, want %q", &out, want)
		}
		out.Reset()
		l = progress.New(&out, "compacting", "rows")
		time.Sleep(time.Minute)
		l.Show(7)
		if want := "compacting: 7 rows\n"; out.String() != want {
			t.Errorf("without a total: %q, want %q", &out, want)
		}
		out.Reset()
		l = progress.New(&out, "restoring", "bytes")
		l.Total(5)
		time.Sleep(time.Minute)
		if text, err := io.ReadAll(l.Bytes(strings.NewReader("12345"))); err != nil || string(text) != "12345" {
			t.Errorf("read %q, %v", text, err)
		}
		if want := "restoring: 5 of 5 bytes (100 %)\n"; out.String() != want {
			t.Errorf("bytes: %q, want %q", &out, want)
		}
		out.Reset()
		l = progress.New(&out, "backing up", "rows")
		l.Total(10)
		time.Sleep(time.Minute)
		l.Show(20)
		if want := "backing up: 20 of 20 rows (100 %)\n"; out.String() != want {
			t.Errorf("more than there was: %q, want %q", &out, want)
		}
	})
}
