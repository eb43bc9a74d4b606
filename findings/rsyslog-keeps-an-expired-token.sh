#!/bin/sh
# rsyslog-kubernetes 8.2302.0 of Debian 12 (mmkubernetes, which adds the metadata of Pods to their logs).
#
# Seen: the file of `tokenfile` is read once, at the start. The kubelet renews a projected token after four fifths of its hour; rsyslog sends the first one for ever.
# Once the server refuses it, the lines of each Pod that is new since then have no labels and no node, and are passed on without them.
# Expected: the file read again, at least after a 401.
# Who is hurt: clusters whose collector is rsyslog: an hour after its start the lines of new Pods lack what routes and alerts go by, and those of older Pods, which
# are in its cache, have it, so that it looks like a fault of the new release.
set -eu
dir=$(mktemp -d); pids=; trap 'kill $pids 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download rsyslog=8.2302.0-1+deb12u2 rsyslog-kubernetes=8.2302.0-1+deb12u2 libestr0 libfastjson4 liblognorm5 libcurl4 libnghttp2-14 librtmp1 libssh2-1 libpsl5 \
  libldap-2.5-0 libsasl2-2 libbrotli1 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libkeyutils1 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
port=${FINDING_PORT:-23790}
cat >server.py <<'END'
import http.server
import json
import sys


class Handler(http.server.BaseHTTPRequestHandler):  # an API server for which only the token in the file is valid
    def do_GET(self):
        given = self.headers.get('Authorization', '').removeprefix('Bearer ').strip()
        valid = given == open('token').read().strip()
        body = {'metadata': {'uid': 'u', 'labels': {'app': 'web'}}, 'spec': {'nodeName': 'node'}} if valid else {'kind': 'Status', 'code': 401}
        print(self.path, given, 'accepted' if valid else 'refused', flush=True)
        data = json.dumps(body).encode()
        self.send_response(200 if valid else 401)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
END
mkdir work logs
echo first >token
/usr/bin/python3 server.py "$port" >requests & pids=$!
modules=$dir/usr/lib/x86_64-linux-gnu/rsyslog
cat >rsyslog.conf <<END
global(workDirectory="$dir/work")
module(load="$modules/imfile")
module(load="$modules/mmkubernetes" kubernetesurl="http://127.0.0.1:$port" tokenfile="$dir/token"
  filenamerules=["rule=:$dir/logs/%pod_name:char-to:_%_%namespace_name:char-to:_%_%container_name_and_id:char-to:.%.log"])
template(name="line" type="string" string="%msg% pod: %\$!kubernetes!pod_name% labels: %\$!kubernetes!labels% node: %\$!kubernetes!host%\n")
input(type="imfile" file="$dir/logs/*.log" tag="kubernetes" addmetadata="on" freshStartTail="off")
action(type="mmkubernetes")
action(type="omfile" file="$dir/shipped" template="line")
END
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
usr/sbin/rsyslogd -n -f rsyslog.conf -i "$dir/pid" -M "$modules" >log 2>&1 & pids="$pids $!"
ship() { # POD: a line of it, until it is shipped
  lines=$(wc -l <shipped)
  echo "line of $1" >"logs/$1_default_main-$(head -c 64 /dev/zero | tr '\0' a).log"
  for _ in $(seq 600); do test "$(wc -l <shipped)" -gt "$lines" && break; sleep 0.1; done
}
touch shipped
sleep 2
ship one
echo second >token
ship two
LC_ALL=C sort shipped requests | tee out
cat >want <<'END'
/api/v1/namespaces/default first accepted
/api/v1/namespaces/default/pods/one first accepted
/api/v1/namespaces/default/pods/two first refused
line of one pod: one labels: { "app": "web" } node: node
line of two pod: two labels:  node: 
END
diff want out
