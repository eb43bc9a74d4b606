#!/bin/sh
# SQLite 3.40.1 of Debian 12 (the operators -> and ->>, "for compatibility with PostgreSQL").
#
# Seen: the key on the right of the operator becomes a path: `labels ->> 'app.kubernetes.io/name'` looks for `io/name` within
# `kubernetes` within `app`, and is NULL. `data ->> '8080'` looks for an element of an array, and is NULL.
# A key with a hyphen or a slash only is found. PostgreSQL takes the text for the key in each case.
# Expected: PostgreSQL's answer, for which the operators were made; no error tells the difference.
# Who is hurt: whoever asks a control plane's table by SQL, the same on both databases: all labels that Kubernetes
# recommends have dots, so a count of objects by label is "all of them have none". '$."app.kubernetes.io/name"' works.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download sqlite3=3.40.1-2+deb12u2 libsqlite3-0=3.40.1-2+deb12u2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
for key in app tier/a part-of app.kubernetes.io/name 8080 '$."app.kubernetes.io/name"'; do
  printf '%s: ' "$key"
  printf "SELECT '{\"app\":1,\"tier/a\":2,\"part-of\":3,\"app.kubernetes.io/name\":4,\"8080\":5}' ->> '%s';\n" "$key" |
    LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/sqlite3 -nullvalue NULL -batch :memory:
done | tee out
cat >want <<'EOF'
app: 1
tier/a: 2
part-of: 3
app.kubernetes.io/name: NULL
8080: NULL
$."app.kubernetes.io/name": 4
EOF
diff want out
