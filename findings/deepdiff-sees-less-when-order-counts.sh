#!/bin/sh
# python3-deepdiff 6.2.2 of Debian 12.
#
# Seen: between [0, 1] and [false, true] DeepDiff finds no difference, nor between ["a", 1] and ["a", true]: a list of plain values is compared as Python
# compares lists. With ignore_order it finds the difference, as it does between {"a": 1} and {"a": true} and in a list of objects.
# Expected: a change of type is one wherever it is, and ignore_order finds less, not more.
# Who is hurt: programs that look for drift between what was wanted and what is: flags in a list of a custom resource or in a policy that were changed from
# 1 to true are "equal", and the API server accepts only one of them.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-deepdiff=6.2.2-1 python3-ordered-set >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
import json

from deepdiff import DeepDiff

for before, after in [({'a': 1}, {'a': True}), ([{'a': 1}], [{'a': True}]), ([0, 1], [False, True]), (['a', 1], ['a', True]), ([1.0], [1]), (['1'], [1])]:
    found = ', '.join(f'{name} {"differ" if DeepDiff(before, after, ignore_order=ignore) else "equal"}' for name, ignore in [('ordered', False), ('ignore_order', True)])
    print(f'{json.dumps(before)} and {json.dumps(after)}: {found}')
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'EOF'
{"a": 1} and {"a": true}: ordered differ, ignore_order differ
[{"a": 1}] and [{"a": true}]: ordered differ, ignore_order differ
[0, 1] and [false, true]: ordered equal, ignore_order differ
["a", 1] and ["a", true]: ordered equal, ignore_order differ
[1.0] and [1]: ordered equal, ignore_order equal
["1"] and [1]: ordered differ, ignore_order differ
EOF
diff want out
