#!/bin/sh
# rsyslog 8.2302.0 of Debian 12, imfile, reading an audit log.
#
# Seen: of a line longer than 8096 characters the rest is dropped, and no message of rsyslog's own says so: what is shipped ends
# in the middle of a JSON text. The limit is the global maxMessageSize, which is 8k.
# Expected: the line, or a message that one was cut.
# Who is hurt: audit logs: at level Request or RequestResponse larger writes are longer than that, and what comes last in an
# event is lost first: its times, and the annotations that say who was allowed what and why. A collector that takes only
# JSON drops those lines, so just the large changes are missing.
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download rsyslog=8.2302.0-1+deb12u2 libestr0 libfastjson4 liblognorm5 libsystemd0 libuuid1 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
mkdir work
for size in 100 8000 9000 20000; do
  printf '{"auditID":"a","requestObject":"%s","last":true}\n' "$(head -c $size /dev/zero | tr '\0' x)"
done >audit.log
cat >rsyslog.conf <<EOF
global(workDirectory="$dir/work")
module(load="imfile")
template(name="line" type="string" string="%msg%\n")
input(type="imfile" file="$dir/audit.log" tag="audit:" freshStartTail="off")
action(type="omfile" file="$dir/shipped" template="line")
EOF
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
usr/sbin/rsyslogd -n -f rsyslog.conf -i "$dir/pid" -M "$dir/usr/lib/x86_64-linux-gnu/rsyslog" >log 2>&1 & server=$!
for _ in $(seq 600); do test -s shipped && test "$(wc -l <shipped)" -ge 4 && break; sleep 0.1; done
sleep 3 # for a message of rsyslog's own, which would go to the same file
awk '{ print NR ": " length($0) " characters, " ($0 ~ /"last":true}$/ ? "whole" : "cut") }' shipped | tee out
cat >want <<'EOF'
1: 146 characters, whole
2: 8046 characters, whole
3: 8096 characters, cut
4: 8096 characters, cut
EOF
diff want out
