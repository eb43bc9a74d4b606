#!/bin/sh
# python3-kubernetes 22.6.0 of Debian 12, the official client in Python, with the types of k8s.io/api v0.36.2.
#
# Seen: a field that the schema requires must not be null in an answer, and servers send null for two of them: eventTime in
# events.k8s.io/v1, of each event recorded through the core API, as the kubelet's are, and endpoints of an EndpointSlice
# that has none. One such object fails the whole list with a ValueError. client_side_validation = False of the client's
# Configuration changes nothing: the models read a new Configuration of their own.
# Expected: the list. The schema calls the fields required and Go writes null for what is empty, so a client cannot check.
# Who is hurt: programs that list events or slices: they work until the first kubelet event arrives, and then never again.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-kubernetes=22.6.0-2 python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi \
  python3-websocket python3-requests python3-charset-normalizer python3-idna python3-chardet python3-google-auth \
  python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa \
  python3-pkg-resources >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
mkdir server
cat >server/main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	panic(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var list any = &eventsv1.EventList{
			TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "EventList"},
			Items:    []eventsv1.Event{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Reason: "Pulled", Type: "Normal"}},
		}
		if strings.HasSuffix(r.URL.Path, "/endpointslices") {
			list = &discoveryv1.EndpointSliceList{
				TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"},
				Items:    []discoveryv1.EndpointSlice{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, AddressType: "IPv4"}},
			}
		}
		if err := json.NewEncoder(w).Encode(list); err != nil {
			panic(err)
		}
	})))
}
EOF
(cd server && go mod init finding 2>/dev/null && go get k8s.io/api@v0.36.2 k8s.io/apimachinery@v0.36.2 2>/dev/null && go build -mod=mod -o ../serve .)
./serve >address & server=$!
trap 'kill $server; rm -rf "$dir"' EXIT
for _ in $(seq 600); do test -s address && break; sleep 0.1; done
cat >main.py <<'EOF'
from kubernetes import client

for check in True, False:
    settings = client.Configuration()
    settings.host = 'http://' + open('address').read().strip()
    settings.client_side_validation = check
    api = client.ApiClient(settings)
    for name, read in ('events', client.EventsV1Api(api).list_namespaced_event), ('slices', client.DiscoveryV1Api(api).list_namespaced_endpoint_slice):
        try:
            print(f'validation {check}: {len(read("default").items)} {name}')
        except ValueError as e:
            print(f'validation {check}: {name}: {e}')
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'EOF'
validation True: events: Invalid value for `event_time`, must not be `None`
validation True: slices: Invalid value for `endpoints`, must not be `None`
validation False: events: Invalid value for `event_time`, must not be `None`
validation False: slices: Invalid value for `endpoints`, must not be `None`
EOF
diff want out
