package server

import (
	"net/http"
	"strings"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/status"
)

// Route is a document that can be got in one media type, and nothing else.
type Route struct {
	Produces string
	Handler  http.Handler
}

// routed answers a request for a route or for a path below one; it reports whether
// there is such a route.
func (s *Server) routed(w http.ResponseWriter, r *http.Request) bool {
	for root, route := range s.cfg.Routes {
		rest, found := strings.CutPrefix(r.URL.Path, root)
		if !found || rest != "" && rest[0] != '/' {
			continue
		}
		if err := route.refuses(r, rest); err != nil {
			s.fail(w, r, err)
		} else {
			route.Handler.ServeHTTP(w, r)
		}
		return true
	}
	return false
}

func (route Route) refuses(r *http.Request, rest string) error {
	switch {
	case rest != "" && rest != "/":
		return status.NoResource()
	case r.Method != http.MethodGet:
		return status.NotAllowed()
	}
	return codecs.Acceptable(r, []string{route.Produces})
}
