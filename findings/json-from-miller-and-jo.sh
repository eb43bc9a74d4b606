#!/bin/sh
# miller 6.6.0 (mlr) and jo 1.9 of Debian 12, whose JSON is piped into curl and kubectl, read by Python's json.
#
# Seen: Miller writes numbers of a CSV file as they are, so that 0x1F, .5 and 5. are no JSON, and the control characters of a text too, also from JSON to JSON. An
# integer above 2^63 becomes a text, and a column app.kubernetes.io/name three objects in one another. jo rounds integers to 16 digits: 9223372036854775807
# is 9.223372036854776e+18; 0400 is 400, 1.10 is 1.1, 0x1F is 31, 5e3 is 5000, and an empty value is null.
# Expected: JSON from a writer of JSON, and a number of 64 bits with its digits.
# Who is hurt: scripts that make objects and patches: the API refuses the first ("invalid character 'x'"), and takes the others: a version, a commit or
# an identity that is another one, and a merge patch that deletes what should be empty.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download miller=6.6.0-2+b3 jo=1.9-1 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >read.py <<'EOF'
import json
import sys

text = ' '.join(sys.stdin.read().split('\n')).strip()
try:
    json.loads(text)
    print(text)
except json.JSONDecodeError as e:
    print(f'{text!a}: {e.msg}')
EOF
{
  for number in 31 0x1F .5 5. 18446744073709551615; do
    printf 'a\n%s\n' "$number" | usr/bin/mlr --icsv --ojsonl cat | /usr/bin/python3 read.py
  done
  printf 'app.kubernetes.io/name\nweb\n' | usr/bin/mlr --icsv --ojsonl cat | /usr/bin/python3 read.py
  printf '{"a":12345678901234567890,"b":"x"}' | usr/bin/mlr --ijson --ojsonl cat | /usr/bin/python3 read.py
  printf '{"a":"bell \\u0007"}' | usr/bin/mlr --ijson --ojsonl cat | /usr/bin/python3 read.py
  usr/bin/jo id=9223372036854775807 revision=9007199254740993 mode=0400 version=1.10 port=0x1F commit=5e3 node=
} | tee out
cat >want <<'EOF'
{"a": 31}
'{"a": 0x1F}': Expecting ',' delimiter
'{"a": .5}': Expecting value
'{"a": 5.}': Expecting ',' delimiter
{"a": "18446744073709551615"}
{"app": {"kubernetes": {"io/name": "web"}}}
{"a": "12345678901234567890", "b": "x"}
'{"a": "bell \x07"}': Invalid control character at
{"id":9.223372036854776e+18,"revision":9007199254740992,"mode":400,"version":1.1,"port":31,"commit":5000,"node":null}
EOF
diff want out
