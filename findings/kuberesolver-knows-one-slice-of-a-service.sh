#!/bin/sh
# github.com/sercand/kuberesolver/v6 v6.0.1 (gRPC's name resolution by Kubernetes' API, with a client of its own).
#
# Seen: each event of the watch replaces all addresses by those of the one EndpointSlice in it. A service with two slices, which is one
# with more than a hundred Pods or with IPv4 and IPv6, has the addresses of the slice that changed last. A slice without a ready
# endpoint changes nothing, so the last addresses stay, and a slice that is deleted brings its addresses back. An endpoint
# without the condition "ready" is left out.
# Expected: the union of the service's slices, without those that are gone; "ready" that is not set means true (the API's text).
# Who is hurt: gRPC clients in Go: above a hundred Pods most get no traffic, with two address families half of the connections may
# fail, and after scaling to zero the calls go to addresses that other Pods have by then.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/sercand/kuberesolver/v6"
	"google.golang.org/grpc/resolver"
)

type conn struct {
	resolver.ClientConn
	states chan resolver.State
}

func (c conn) UpdateState(state resolver.State) error {
	c.states <- state
	return nil
}

func event(kind, name, endpoints string) string {
	return fmt.Sprintf(`{"type":"%s","object":{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"%s","namespace":"n"},`+
		`"addressType":"IPv4","ports":[{"name":"grpc","port":8080}],"endpoints":[%s]}}`+"\n", kind, name, endpoints)
}

func main() {
	const first = `{"addresses":["10.0.0.1"],"conditions":{"ready":true}},{"addresses":["10.0.0.2"],"conditions":{"ready":true}}`
	steps := []struct{ what, event string }{
		{"slice a: two ready", event("ADDED", "a", first)},
		{"slice b: one ready", event("ADDED", "b", `{"addresses":["10.0.0.3"],"conditions":{"ready":true}}`)},
		{"slice b: one without the condition", event("MODIFIED", "b", `{"addresses":["10.0.0.3"],"conditions":{}}`)},
		{"slice b: none", event("MODIFIED", "b", "")},
		{"slice a: deleted", event("DELETED", "a", first)},
	}
	next := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case <-r.Context().Done():
				return
			case text := <-next:
				fmt.Fprint(w, text)
				w.(http.Flusher).Flush()
			}
		}
	}))
	states := make(chan resolver.State, 10)
	target, err := url.Parse("kubernetes:///s.n:grpc")
	if err != nil {
		panic(err)
	}
	builder := kuberesolver.NewBuilder(kuberesolver.NewInsecureK8sClient(server.URL), "kubernetes")
	if _, err := builder.Build(resolver.Target{URL: *target}, conn{states: states}, resolver.BuildOptions{}); err != nil {
		panic(err)
	}
	for _, step := range steps {
		next <- step.event
		result := "no change"
		select {
		case state := <-states:
			result = ""
			for _, address := range state.Addresses {
				result += " " + address.Addr
			}
		case <-time.After(2 * time.Second):
		}
		fmt.Printf("%s: %s\n", step.what, result)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/sercand/kuberesolver/v6@v6.0.1 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
slice a: two ready:  10.0.0.1:8080 10.0.0.2:8080
slice b: one ready:  10.0.0.3:8080
slice b: one without the condition: no change
slice b: none: no change
slice a: deleted:  10.0.0.1:8080 10.0.0.2:8080
EOF
diff want out
