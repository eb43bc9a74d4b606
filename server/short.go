package server

import (
	"net/http"
	"strings"

	"github.com/rowlock/rowlock/server/conns"
)

// short says which requests are answered at once, and so may be served beside package http2.
func (s *Server) short() conns.Short {
	if s.cfg.Serving.ShortRequests == conns.Standard {
		return conns.Short{}
	}
	return conns.Short{Is: isShort}
}

// isShort tells writes of objects, and reads of a single one in a namespace: requests that
// go on for as long as the client, or a backend, likes are none of them.
func isShort(method, path string) bool {
	rest, grouped := strings.CutPrefix(path, "/apis/")
	if grouped {
		_, rest, grouped = strings.Cut(rest, "/")
	}
	if !grouped && !strings.HasPrefix(path, "/api/") {
		return false
	}
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return !connects(path)
	case http.MethodGet:
		_, of, _ := strings.Cut(strings.TrimPrefix(rest, "/api/"), "/") // behind the version
		object, in := strings.CutPrefix(of, "namespaces/")
		return in && strings.Count(object, "/") == 2 && !strings.ContainsAny(object, "?%")
	}
	return false
}

// connects says that a path may lead to somebody else, who answers for as long as they like.
// An object that is called like that is served by package http2.
func connects(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "proxy", "exec", "attach", "portforward":
			return true
		}
	}
	return strings.Contains(path, "%")
}
