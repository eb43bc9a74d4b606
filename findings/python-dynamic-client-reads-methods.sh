#!/bin/sh
# python3-kubernetes 22.6.0 of Debian 12, the official client in Python: the objects of its dynamic client (and of openshift, which it comes from).
#
# Seen: a field is looked up in a dict and then among the dict's own methods: spec.values of an object that has none is a function, and so true; the same for
# items, keys, get, copy, pop and update. Other missing fields are None. An object that has a key "self" anywhere, in the data of a ConfigMap for instance, is a
# TypeError, and with it the whole list that it is in. A field compared with None by == is an AttributeError.
# Expected: None for a field that is not there, whatever its name, and any key that the API accepts.
# Who is hurt: operators in Python: `if release.spec.values:` of a Helm release is always so, `update` of a CI task likewise; and one ConfigMap with a file "self",
# of anybody, stops each program that lists ConfigMaps.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-kubernetes=22.6.0-2 python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi \
  python3-websocket python3-requests python3-charset-normalizer python3-idna python3-chardet python3-google-auth \
  python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa python3-pkg-resources >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'END'
from kubernetes.dynamic.resource import ResourceInstance


def read(name, action):
    try:
        print(f'{name}: {action()}')
    except Exception as e:
        print(f'{name}: {type(e).__name__}: {e}'.split('__init__')[0])


release = ResourceInstance(None, {'apiVersion': 'v2', 'kind': 'HelmRelease', 'metadata': {'name': 'web'}, 'spec': {'interval': '5m'}})
for field in ('values', 'update', 'items', 'chart'):
    value = getattr(release.spec, field)
    read(f'spec.{field}', lambda: f'{type(value).__name__}, {bool(value)}')
read('metadata == None', lambda: release.metadata == None)  # noqa: E711
maps = [{'metadata': {'name': 'a'}, 'data': {'key': 'x'}}, {'metadata': {'name': 'b'}, 'data': {'self': 'x'}}]
read('a list', lambda: len(ResourceInstance(None, {'apiVersion': 'v1', 'kind': 'ConfigMapList', 'items': maps[:1]}).attributes.__dict__['items']))
read('a list with a key "self"', lambda: ResourceInstance(None, {'apiVersion': 'v1', 'kind': 'ConfigMapList', 'items': maps}))
END
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'END'
spec.values: builtin_function_or_method, True
spec.update: builtin_function_or_method, True
spec.items: builtin_function_or_method, True
spec.chart: NoneType, False
metadata == None: AttributeError: 'NoneType' object has no attribute '__dict__'
a list: 1
a list with a key "self": TypeError: ResourceField.
END
diff want out
