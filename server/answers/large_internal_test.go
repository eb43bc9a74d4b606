package answers

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestRoomForLargeObjects: answers with large objects have as many bytes as there is room for, half of it for one user; others wait.
func TestRoomForLargeObjects(t *testing.T) {
	sizes, err := budget.SizesOf(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	a := &Answers{Large: NewRoom(sizes)}
	item := func(n int) *cache.Item { return cache.NewOwnItem(&sqlstore.Row{Value: make([]byte, n)}, nil) }
	large := item(4 << 20)
	json, yaml := codecs.Form{Type: codecs.JSON}, codecs.Form{Type: codecs.YAML}
	of := func(user string) *Request {
		return &Request{R: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), Scope: &request.Scope{User: &authx.Identity{Name: user}}}
	}
	waits := func(user string, as codecs.Form, it *cache.Item) bool {
		t.Helper()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		q := of(user)
		q.R = q.R.WithContext(ended)
		defer q.End()
		err := a.Room(q, as, it)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return err != nil
	}
	var some []*Request
	for range 8 {
		q := of("one")
		some = append(some, q)
		for range 2 { // a list has many
			if err := a.Room(q, json, large); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !waits("one", json, large) || waits("other", json, large) || waits("one", json, item(budget.DefaultBody)) {
		t.Error("half of the room is for one user, and small objects need none")
	}
	q := of("other")
	if err := a.Room(q, yaml, large); err != nil {
		t.Fatal(err)
	}
	if !waits("third", json, large) {
		t.Error("there is room for more than sixteen objects; another form counts eight times")
	}
	q.End()
	some[0].End()
	if waits("third", yaml, large) || waits("one", json, large) {
		t.Error("the room is not given back")
	}
	for _, q := range some {
		q.End()
	}
}
