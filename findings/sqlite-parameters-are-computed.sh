#!/bin/sh
# sqlite3 3.40.1 of Debian 12 (the shell): `.parameter set`.
#
# Seen: the value of a parameter is computed as SQL, and taken as text only if that fails. A date is a difference (2024-01-01 is 2022), the version 1.10 is 1.1, 0400
# is 400, a hash of digits and one e is infinity, and two groups of digits with a hyphen are subtracted, in single or double quotes too. node-1 and 10.0.0.1
# are texts. DELETE ... WHERE day <> @day, with the day of the only row, deletes this row.
# Expected: a value is a value: parameters are what one uses in order not to put values into SQL. The documentation has the second pair of
# quotes that makes a text; a value that needs it and has not got it is no error.
# Who is hurt: scripts that look for a key, a date or a version by a parameter: they work for all names but those, find nothing, or delete what they should keep.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download sqlite3=3.40.1-2+deb12u2 libsqlite3-0=3.40.1-2+deb12u2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
cat >values <<'EOF'
node-1
10.0.0.1
2024-01-01
'2024-01-01'
"2024-01-01"
"'2024-01-01'"
1.10
0400
1234-5678
12e4567
9223372036854775808
EOF
{
  while read -r value; do
    printf '%s: ' "$value"
    printf ".parameter set @value %s\nSELECT quote(@value) || ', ' || typeof(@value);\n" "$value" | usr/bin/sqlite3
  done <values
  printf "CREATE TABLE days (day TEXT);\nINSERT INTO days VALUES ('2024-01-01');\n.parameter set @day 2024-01-01\nDELETE FROM days WHERE day <> @day;\nSELECT 'days left: ' || count(*) FROM days;\n" | usr/bin/sqlite3
} | tee out
cat >want <<'EOF'
node-1: 'node-1', text
10.0.0.1: '10.0.0.1', text
2024-01-01: 2022, integer
'2024-01-01': 2022, integer
"2024-01-01": 2022, integer
"'2024-01-01'": '2024-01-01', text
1.10: 1.1, real
0400: 400, integer
1234-5678: -4444, integer
12e4567: Inf, real
9223372036854775808: 9.2233720368547758078e+18, real
days left: 0
EOF
diff want out
