#!/bin/sh
# python3-jsonpatch 1.32 of Debian 12 (make_patch, by which webhooks in Python make their answers, and Ansible's k8s_json_patch), with Python 3.11.
#
# Seen: if two items leave a list and the first of them turns up elsewhere, make_patch writes a "remove" and a "move" of the same index: what is moved
# is the second item. Whether it does so depends on the order of the keys in a set, which Python draws anew for each process: with PYTHONHASHSEED=0 the patch
# below is right, with 1 it is wrong. In lists, 1 and true, 0 and false, 1 and 1.0 are the same, and there is no patch; outside of lists there is.
# Expected: a patch that leads from the first document to the second. The library's own apply gives the third.
# Who is hurt: webhooks and operators: the object that is stored is not the one that the code made, in some Pods of a Deployment and not in others, and a
# test passes or fails from run to run.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-jsonpatch=1.32-2 python3-json-pointer=2.3-2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
import copy
import json

import jsonpatch

for before, after in [
    ({'standby': ['a', 'b'], 'spec': {}}, {'standby': [], 'spec': {'primary': 'a'}}),
    ({'active': ['a', 'b'], 'spec': {}}, {'active': [], 'spec': {'primary': 'a'}}),
    ({'flags': [1, 0]}, {'flags': [True, False]}),
    ({'flag': 1}, {'flag': True}),
]:
    patch = jsonpatch.make_patch(before, after)
    result = patch.apply(copy.deepcopy(before))
    right = json.dumps(result, sort_keys=True) == json.dumps(after, sort_keys=True)
    print(f'  {patch}: {"right" if right else "wrong, " + json.dumps(result)}')
EOF
for seed in 0 1; do
  echo "PYTHONHASHSEED=$seed"
  PYTHONHASHSEED=$seed PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py
done | tee out
cat >want <<'EOF'
PYTHONHASHSEED=0
  [{"op": "move", "from": "/standby/0", "path": "/spec/primary"}, {"op": "remove", "path": "/standby/0"}]: right
  [{"op": "move", "from": "/active/0", "path": "/spec/primary"}, {"op": "remove", "path": "/active/0"}]: right
  []: wrong, {"flags": [1, 0]}
  [{"op": "replace", "path": "/flag", "value": true}]: right
PYTHONHASHSEED=1
  [{"op": "remove", "path": "/standby/0"}, {"op": "move", "from": "/standby/0", "path": "/spec/primary"}]: wrong, {"standby": [], "spec": {"primary": "b"}}
  [{"op": "remove", "path": "/active/0"}, {"op": "move", "from": "/active/0", "path": "/spec/primary"}]: wrong, {"active": [], "spec": {"primary": "b"}}
  []: wrong, {"flags": [1, 0]}
  [{"op": "replace", "path": "/flag", "value": true}]: right
EOF
diff want out
