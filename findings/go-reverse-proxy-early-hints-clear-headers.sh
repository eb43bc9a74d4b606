#!/bin/sh
# Go 1.26, net/http/httputil.ReverseProxy (standard library).
#
# Seen: a handler sets response headers and calls a ReverseProxy. If the backend sends an informational
# response first (103 Early Hints, 100 Continue, 102 Processing), the headers that the handler had set are
# sent with the informational response, and are missing from the final one: the proxy clears the whole
# header map after it has passed the 1xx on, including what was there before.
# Expected: the final response has the headers of the handler, as without the informational response.
# Who is hurt: gateways that add request ids, Cache-Control: no-store, HSTS or CORS headers in a middleware
# in front of a ReverseProxy. Any backend that begins to send early hints takes them away.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
go mod init finding 2>/dev/null
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
)

func main() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hints" {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
		}
		fmt.Fprint(w, "body")
	}))
	defer backend.Close()
	target, err := url.Parse(backend.URL)
	if err != nil {
		panic(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "17")
		w.Header().Set("Cache-Control", "no-store")
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	for _, path := range []string{"/plain", "/hints"} {
		answer, err := http.Get(front.URL + path)
		if err != nil {
			panic(err)
		}
		answer.Body.Close()
		fmt.Printf("%s: %d, X-Request-Id %q, Cache-Control %q\n", path, answer.StatusCode, answer.Header.Get("X-Request-Id"), answer.Header.Get("Cache-Control"))
	}
}
EOF
go run . >out
cat out
cat >want <<'EOF'
/plain: 200, X-Request-Id "17", Cache-Control "no-store"
/hints: 200, X-Request-Id "", Cache-Control ""
EOF
diff want out
