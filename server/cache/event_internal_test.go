package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

// TestEventLogCountsReplacedStates: the previous states of events count, also those that are much larger than what replaced them.
func TestEventLogCountsReplacedStates(t *testing.T) {
	const size, fit = 1 << 20, 4
	revision := int64(0)
	item := func(n int) *Item {
		revision++
		value := fmt.Sprintf(`{"metadata":{"name":"a"},"text":%q}`, strings.Repeat("x", n))
		return NewOwnItem(&sqlstore.Row{Revision: revision, Value: []byte(value)}, nil)
	}
	for name, event := range map[string]func() *Event{
		"added":                      func() *Event { return &Event{Type: Added, Item: item(size)} },
		"modified":                   func() *Event { return &Event{Type: Modified, Prev: item(size), Item: item(size)} },
		"modified to a small object": func() *Event { return &Event{Type: Modified, Prev: item(size), Item: item(10)} },
		"deleted":                    func() *Event { return &Event{Type: Deleted, Prev: item(size / 2), Item: item(size / 2)} },
	} {
		l := eventLog{bounds: eventLogBounds{count: 100, bytes: fit*size + size/2, age: 1}}
		for range 20 {
			l.add(event())
		}
		if n := len(l.after(l.floor)); n != fit {
			t.Errorf("%s: the log has %d events of 1 MB, want %d", name, n, fit)
		}
		l.trim(2)
		if l.bytes != 0 {
			t.Errorf("%s: an empty log has %d bytes", name, l.bytes)
		}
	}
}
