#!/bin/sh
# github.com/NYTimes/gziphandler v1.1.1 and github.com/klauspost/compress v1.20.3 (gzhttp).
#
# Seen: behind gziphandler a watch delivers nothing, not even its headers, until 1400 bytes of events are there, though the handler
# flushes after each: Flush does nothing before that many bytes. It does so for each client that sends Accept-Encoding: gzip,
# which Go's, Python's and Node's do by themselves. gzhttp flushes.
# Expected: what http.Flusher is for; a handler that flushes has decided that what it wrote is to be sent.
# Who is hurt: gateways and aggregated API servers that compress: a watch of a quiet resource seems to hang, informers never
# sync, and `curl`, which does not ask for gzip, shows that all is well.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/NYTimes/gziphandler"
	"github.com/klauspost/compress/gzhttp"
)

func main() {
	watch := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"2"}}}`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{{"no compression", watch}, {"gziphandler", gziphandler.GzipHandler(watch)}, {"gzhttp", gzhttp.GzipHandler(watch)}} {
		server := httptest.NewServer(c.handler)
		for _, plain := range []bool{false, true} {
			client := &http.Client{Transport: &http.Transport{DisableCompression: plain}}
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				panic(err)
			}
			result := "no headers after 3 s"
			if response, err := client.Do(request); err == nil {
				result = "headers, but no event after 3 s"
				if line, err := bufio.NewReader(response.Body).ReadString('\n'); err == nil {
					result = fmt.Sprintf("an event of %d bytes", len(line))
				}
				response.Body.Close()
			}
			cancel()
			client.CloseIdleConnections()
			fmt.Printf("%s, client asks for gzip %v: %s\n", c.name, !plain, result)
		}
		server.Close()
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/NYTimes/gziphandler@v1.1.1 github.com/klauspost/compress@v1.20.3 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
no compression, client asks for gzip true: an event of 111 bytes
no compression, client asks for gzip false: an event of 111 bytes
gziphandler, client asks for gzip true: no headers after 3 s
gziphandler, client asks for gzip false: an event of 111 bytes
gzhttp, client asks for gzip true: an event of 111 bytes
gzhttp, client asks for gzip false: an event of 111 bytes
EOF
diff want out
