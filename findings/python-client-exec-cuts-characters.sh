#!/bin/sh
# python3-kubernetes 22.6.0 of Debian 12, the official client in Python: stream() for exec and attach.
#
# Seen, 1: each message of the connection is decoded by itself, so a character whose bytes come in two messages arrives as
# replacement characters. Runtimes cut the output where their buffer ends, anywhere.
# Expected: the output of the process.
# Who is hurt: programs that read dumps, JSON or lists of names out of a Pod: now and then one character is damaged, and in a
# test with short output none. An archive is damaged always.
#
# Seen, 2: returncode raises KeyError 'details' if the command could not be run (the container is gone, its node is not
# reachable): the status that the server sends then has no exit code, and its message is lost.
# Expected: an ApiException with the server's message.
# Who is hurt: operators: the log says KeyError where the server said "error dialing backend".
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-kubernetes=22.6.0-2 python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi \
  python3-websocket python3-requests python3-charset-normalizer python3-idna python3-chardet python3-google-auth \
  python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa \
  python3-pkg-resources >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
mkdir server
cat >server/main.go <<'EOF'
package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	upgrader := websocket.Upgrader{Subprotocols: []string{"v4.channel.k8s.io"}}
	panic(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			panic(err)
		}
		defer connection.Close()
		status := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`
		if strings.Contains(r.URL.Path, "/gone/") {
			status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"InternalError",` +
				`"message":"error dialing backend","code":500}`
		}
		text := "Zürich"
		for _, message := range []string{"\x01" + text[:2], "\x01" + text[2:] + "\n", "\x03" + status} {
			if err := connection.WriteMessage(websocket.BinaryMessage, []byte(message)); err != nil {
				panic(err)
			}
		}
		_ = connection.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	})))
}
EOF
(cd server && go mod init finding 2>/dev/null && go get github.com/gorilla/websocket@v1.5.3 2>/dev/null && go build -mod=mod -o ../serve .)
./serve >address & server=$!
for _ in $(seq 600); do test -s address && break; sleep 0.1; done
cat >main.py <<'EOF'
from kubernetes import client
from kubernetes.stream import stream

settings = client.Configuration()
settings.host = 'http://' + open('address').read().strip()
client.Configuration.set_default(settings)
api = client.CoreV1Api()
for name in 'running', 'gone':
    connection = stream(api.connect_get_namespaced_pod_exec, name, 'default', command='hostname', stdout=True, stderr=True,
                        _preload_content=False)
    connection.run_forever(timeout=60)
    print(name, 'wrote', ascii(connection.read_stdout()))
    try:
        print(name, 'returned', connection.returncode)
    except Exception as e:
        print(name, 'returned', type(e).__name__, e)
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'EOF'
running wrote 'Z\ufffd\ufffdrich\n'
running returned 0
gone wrote 'Z\ufffd\ufffdrich\n'
gone returned KeyError 'details'
EOF
diff want out
