package watches

import (
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// numbered is a connection of which only its number counts.
type numbered struct {
	wire.Conn
	id uint64
}

func (n numbered) ID() uint64 { return n.id }

// TestTogether: the first bookmark comes after half a minute to a minute, and all others each
// minute, at one of two times for all watches of a connection.
func TestTogether(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	for id := range uint64(20) {
		conn := numbered{id: id}
		times := map[time.Duration]bool{}
		for s := range 240 {
			now := begin.Add(time.Duration(s) * 977 * time.Millisecond)
			first := together(conn, now, now.Add(bookmarkEvery))
			if in := first.Sub(now); in < bookmarkEvery/2 || in > bookmarkEvery {
				t.Fatalf("connection %d, after %v: the first bookmark comes after %v", id, now.Sub(begin), in)
			}
			times[time.Duration(first.UnixNano())%bookmarkEvery] = true
			late := first.Add(wheelTick)
			if second := together(conn, late, late.Add(bookmarkEvery)); second.Sub(first) != bookmarkEvery {
				t.Fatalf("connection %d: the second bookmark comes %v behind the first", id, second.Sub(first))
			}
		}
		if len(times) != 2 {
			t.Errorf("connection %d has bookmarks at %d times of a minute", id, len(times))
		}
	}
	end := begin.Add(20 * time.Second)
	if got := together(numbered{id: 1}, begin, end); !got.Equal(end) {
		t.Errorf("the end of a watch is moved by %v", got.Sub(end))
	}
}
