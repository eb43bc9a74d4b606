#!/bin/sh
# systemd 252.39 of Debian 12 (journalctl, systemd-journal-remote).
#
# Seen: `journalctl -o json`, which log shippers read, writes null for a field of more than 4096 bytes. An audit event with a request's
# object is longer than that as a rule. `-o cat` and `--all` have the whole text; the manual mentions the limit beside --all.
# Expected: the message, or an error: what reads JSON has asked for all fields.
# Who is hurt: clusters whose API server logs to standard output under systemd: short events (reads) arrive at the archive, and those
# of writes, which the audit is for, are there with a time, a host and the message null.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
v=252.39-1~deb12u2
apt-get download systemd=$v libsystemd-shared=$v libsystemd0=$v systemd-journal-remote=$v libmicrohttpd12 libcurl4 libgnutls30 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/usr/lib/x86_64-linux-gnu/systemd:$dir/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu/systemd"
binary() { for path in "usr/bin/$1" "bin/$1" "usr/lib/systemd/$1" "lib/systemd/$1"; do test -x "$path" && echo "$path" && return; done; }
node -e '
  for (const size of [100, 4000, 5000]) {
    const message = JSON.stringify({ kind: "Event", verb: "create", requestObject: { data: { a: "x".repeat(size) } } })
    process.stdout.write(`__REALTIME_TIMESTAMP=17000000000${size}\n__MONOTONIC_TIMESTAMP=${size}\n_BOOT_ID=0123456789abcdef0123456789abcdef\nMESSAGE=${message}\n\n`)
  }' >export
"$(binary systemd-journal-remote)" --output="$dir/audit.journal" export >/dev/null 2>&1
for arguments in '-o json' '-o json --all' '-o cat'; do
  # shellcheck disable=SC2086
  "$(binary journalctl)" --file audit.journal --no-pager $arguments 2>/dev/null | ARGUMENTS=$arguments node -e '
    const lines = require("fs").readFileSync(0, "utf8").trim().split("\n")
    const show = (line) => process.env.ARGUMENTS === "-o cat" ? line : JSON.parse(line).MESSAGE
    console.log(`${process.env.ARGUMENTS}: ${lines.map(show).map((m) => m === null ? "null" : `${m.length} characters`).join(", ")}`)'
done | tee out
cat >want <<'EOF'
-o json: 166 characters, 4066 characters, null
-o json --all: 166 characters, 4066 characters, 5066 characters
-o cat: 166 characters, 4066 characters, 5066 characters
EOF
diff want out
