package aggregator

import (
	"net/http"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestMarkOfTheUnreadable: the filter that marks requests does not panic while APIServices cannot be read, because
// it comes before the filters that answer, record and count such a failure. The handler does.
func TestMarkOfTheUnreadable(t *testing.T) {
	c := cache.NewWith(kinds.NewCatalogue(builtin.Resources()), cache.Config{})
	a := New(Config{Cache: c})
	a.follower = follow.New(c, a.reset, follow.Kind{Storage: Storage, Set: func(*cache.Item) { panic(&cache.Unreadable{}) }, Delete: a.forget})
	row := sqlstore.Row{Key: sqlstore.Key{Resource: Storage, Name: "v1.example.com"}, Revision: 1}
	row.Value = []byte(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.example.com"}}`)
	c.Apply([]sqlstore.Change{{Row: row}})
	info := &request.Info{Path: "/apis/example.com/v1/things", Group: "example.com", Version: "v1"}
	if err := cache.Try(func() { a.Mark(info, http.Header{"Connection": {"Upgrade"}}) }); err != nil || !info.Remote || info.Upgrade || info.Local {
		t.Errorf("%v: %+v", err, info)
	}
	if err := cache.Try(func() { a.Serves(info) }); err == nil {
		t.Error("the handler finds the server")
	}
}

// TestMark: a request is for this server or for another one.
func TestMark(t *testing.T) {
	c := cache.NewWith(kinds.NewCatalogue(builtin.Resources()), cache.Config{})
	a := New(Config{Cache: c})
	row := sqlstore.Row{Key: sqlstore.Key{Resource: Storage, Name: "v1.example.com"}, Revision: 1}
	row.Value = []byte(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.example.com"},` +
		`"spec":{"group":"example.com","version":"v1","service":{"namespace":"a","name":"b"}}}`)
	c.Apply([]sqlstore.Change{{Row: row}})
	for path, remote := range map[string]bool{"/apis/example.com/v1/things": true, "/apis/example.com/v2/things": false, "/api/v1/pods": false, "/healthz": false} {
		info := &request.Info{Path: path}
		if a.Mark(info, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"x"}}); info.Remote != remote || info.Local == remote || info.Upgrade != remote {
			t.Errorf("%s: %+v", path, info)
		}
	}
}
