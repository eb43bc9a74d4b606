package watches

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/request"
)

// TestSlowClientsAreLoggedOnce: clients that do not read their watches do not cause a line for each of them.
func TestSlowClientsAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	s := &Server{Log: slog.New(slog.NewTextHandler(&out, nil))}
	for range 100 {
		w := &stream{server: s, request: &answers.Request{Resource: &kinds.Resource{}, Scope: &request.Scope{Info: &request.Info{Path: "/api/v1/pods"}}}}
		w.fail(nil, cache.ErrSlow)
	}
	if n := strings.Count(out.String(), "the client is too slow"); n != 1 {
		t.Errorf("%d lines", n)
	}
}
