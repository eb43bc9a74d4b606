#!/bin/sh
# haproxy 2.6.12 of Debian 12, json_query (and jwt_payload_query, which is the same on the content of a token).
#
# Seen: a number of JSON is a text of six digits: the tenants 1234567 and 1234568 are both "1.23457e+06", 4294967297 is "4.29497e+09", true is 1. An escape from
# \u0080 to \u00ff is one byte of Latin-1, so that "M\u00fcller" is no UTF-8, and a text with a higher one is empty. With 'int' as second argument numbers are right.
# Expected: the number as it is written, and the text that the escapes stand for; the manual names numbers and strings as supported.
# Who is hurt: routes, maps, rate limits and log lines by a claim or a member that is a number: up to 999999 all is right, then a thousand tenants share one
# limit and one line of a map. A name with an umlaut is found or not, by whether the issuer escapes it.
set -eu
dir=$(mktemp -d); haproxy=; trap 'kill "$haproxy" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download haproxy=2.6.12-1+deb12u4 liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 libpcre2-8-0 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
port=${FINDING_PORT:-23790}
cat >haproxy.cfg <<END
defaults
  mode http
  timeout client 5s
  timeout server 5s
  timeout connect 5s
frontend test
  bind 127.0.0.1:$port
  http-request set-var(txn.json) req.fhdr(json)
  http-request return status 200 content-type text/plain lf-string "%[var(txn.json),json_query('\\\$.claim')] as int: %[var(txn.json),json_query('\\\$.claim','int')]\\n"
END
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/sbin/haproxy -f haproxy.cfg -q & haproxy=$!
for _ in $(seq 100); do
  if curl -s -o ready -H 'json: {}' "http://127.0.0.1:$port/"; then break; fi
  sleep 0.1
done
for claim in 999999 1234567 1234568 4294967297 0.1234567 true '"a b"' '"a\u003cb"' '"M\u00fcller"' '"\u20ac"' '"Müller"'; do
  printf '%s: %s\n' "$claim" "$(curl -s -H "json: {\"claim\": $claim}" "http://127.0.0.1:$port/" | cat -v)"
done | tee out
cat >want <<'END'
999999: 999999 as int: 999999
1234567: 1.23457e+06 as int: 1234567
1234568: 1.23457e+06 as int: 1234568
4294967297: 4.29497e+09 as int: 4294967297
0.1234567: 0.123457 as int: 0
true: 1 as int: 1
"a b": a b as int: a b
"a\u003cb": a<b as int: a<b
"M\u00fcller": MM-|ller as int: MM-|ller
"\u20ac":  as int: 
"Müller": MM-CM-<ller as int: MM-CM-<ller
END
diff want out
