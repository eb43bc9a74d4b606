#!/bin/sh
# syslog-ng 3.38.1 of Debian 12, json-parser() and $(format-json), as its documentation combines them to ship JSON.
#
# Seen: another document comes out. A dot in a key makes objects: the annotation "authorization.k8s.io/decision" is
# {"authorization":{"k8s":{"io/decision":"allow"}}}. Labels "app" and "app.kubernetes.io/name" make one object, in which "web" is
# app.app. Numbers, booleans, null and lists become texts, and an empty object disappears.
# Expected: the document.
# Who is hurt: collectors of audit logs and of Pods' logs: alerts on a code of 403 or above compare texts, queries for the
# annotations by their names find nothing, and a store that has seen "app" as a text refuses the event where it is an object.
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download syslog-ng-core=3.38.1-5+deb12u1 libivykis0 libjson-c5 libnet1 libpcre3 libwrap0 libnsl2 libtirpc3 libglib2.0-0 libcap2 \
  libsystemd0 libssl3 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >events <<'EOF'
{"annotations":{"authorization.k8s.io/decision":"allow"},"labels":{"app":"web","app.kubernetes.io/name":"shop"},"code":403,"dryRun":true,"ips":["10.0.0.1","10.0.0.2"],"args":[],"emptyDir":{},"user":null}
EOF
cat >syslog-ng.conf <<EOF
@version: 3.38
@module json-plugin
log {
  source { file("$dir/events" flags(no-parse)); };
  parser { json-parser(prefix("x.")); };
  destination { file("$dir/shipped" template("\$(format-json x.* --shift-levels 1)\n")); };
};
EOF
LD_LIBRARY_PATH="$dir/usr/lib/syslog-ng:$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu" usr/sbin/syslog-ng -F --no-caps \
  -f syslog-ng.conf -p "$dir/pid" -c "$dir/ctl" -R "$dir/persist" --module-path "$dir/usr/lib/syslog-ng/3.38" >log 2>&1 & server=$!
for _ in $(seq 600); do test -s shipped && break; sleep 0.1; done
tee out <shipped
cat >want <<'EOF'
{"user":"","labels":{"app":{"kubernetes":{"io/name":"shop"},"app":"web"}},"ips":"10.0.0.1,10.0.0.2","dryRun":"true","code":"403","args":"","annotations":{"authorization":{"k8s":{"io/decision":"allow"}}}}
EOF
diff want out
