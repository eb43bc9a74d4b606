package server_test

import (
	"fmt"
	"strings"
	"testing"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestDefaultPriorityClass: a Pod gets the class that is the default, however many others there are, of
// which none is decoded for it.
func TestDefaultPriorityClass(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), func(c *server.Config) {
		c.Controllers.Runs = func(string) bool { return false }
	})
	const classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
	created, path := 0, "/api/v1/namespaces/default/pods"
	s.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"default"}}`)
	s.Must("POST", "/api/v1/namespaces/default/serviceaccounts", `{"metadata":{"name":"default"}}`)
	class := func() (name string, decoded int64) {
		created++
		before := s.Cache.JSON().Count(jsoncodec.Decode, jsoncodec.Fast)
		got := string(s.Must("POST", path, fmt.Sprintf(`{"metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","image":"i:1"}]}}`, created)))
		decoded = s.Cache.JSON().Count(jsoncodec.Decode, jsoncodec.Fast) - before
		_, rest, _ := strings.Cut(got, `"priorityClassName":"`)
		name, _, _ = strings.Cut(rest, `"`)
		return name, decoded
	}
	_, none := class()
	for i := range 20 {
		s.Must("POST", classes, fmt.Sprintf(`{"metadata":{"name":"c%d"},"value":%d}`, i, i))
	}
	if name, decoded := class(); name != "" || decoded != none {
		t.Errorf("of twenty classes: %q, and %d objects were decoded instead of %d", name, decoded, none)
	}
	s.Must("POST", classes, `{"metadata":{"name":"usual"},"value":7,"globalDefault":true}`)
	if name, decoded := class(); name != "usual" || decoded != none+1 {
		t.Errorf("%q, and %d objects were decoded instead of %d", name, decoded, none+1)
	}
	s.Must("PATCH", classes+"/usual", `{"globalDefault":false}`, "Content-Type", "application/merge-patch+json")
	if name, _ := class(); name != "" {
		t.Errorf("it is not the default any more: %q", name)
	}
}
