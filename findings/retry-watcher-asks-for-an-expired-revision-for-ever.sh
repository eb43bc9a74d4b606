#!/bin/sh
# k8s.io/client-go v0.37.2 (tools/watch.RetryWatcher, and watch.Until on it).
#
# Seen: a watch that the server ends with an ERROR event of code 410 ends the RetryWatcher with that event. If the server answers the same
# request with the status 410, the RetryWatcher sends the same request each second, with the same resourceVersion, for as long as its context
# lives: the caller gets no event, no error and, below verbosity 4, no log line. 401 and 403 as a status end it.
# Expected: one behavior for one refusal. A resourceVersion that has expired does not come back, and the API documents the status 410 as the
# sign to list again.
# Who is hurt: programs that wait with watch.Until or a RetryWatcher against servers that refuse before the stream begins, as aggregated
# API servers and caching proxies do: after a break that is longer than the history they wait for ever, and a load balancer sees a request a second.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const expired = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}`

func try(name string, answer http.HandlerFunc) {
	var mu sync.Mutex
	var versions []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		versions = append(versions, r.URL.Query().Get("resourceVersion"))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	defer server.Close()
	client := dynamic.NewForConfigOrDie(&rest.Config{Host: server.URL}).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, "7", &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	})
	if err != nil {
		panic(err)
	}
	seen := "no event"
	for event := range watcher.ResultChan() {
		seen = fmt.Sprintf("event %s", event.Type)
	}
	mu.Lock()
	defer mu.Unlock()
	requests := "one request"
	if len(versions) >= 5 {
		requests = "five requests or more"
	}
	for _, version := range versions {
		if version != "7" {
			requests += ", also from " + version
		}
	}
	fmt.Printf("%s: %s, %s from version 7, ended by itself: %v\n", name, seen, requests, ctx.Err() == nil)
}

func main() {
	try("event of code 410", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"type":"ERROR","object":%s}`+"\n", expired)
	})
	try("status 410", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
		fmt.Fprintln(w, expired)
	})
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
event of code 410: event ERROR, one request from version 7, ended by itself: true
status 410: no event, five requests or more from version 7, ended by itself: false
EOF
diff want out
