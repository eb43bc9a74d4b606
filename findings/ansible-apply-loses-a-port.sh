#!/bin/sh
# kubernetes.core as in Debian 12's ansible 7.7.0: the function that decides what `kubernetes.core.k8s` with `apply: true` sends.
#
# Seen: lists are merged by one key: the ports of a Service by `port`, those of a container by `containerPort`. A Service with
# port 53 for UDP and for TCP is created with both. When the playbook runs again, unchanged, the module sends a merge patch
# whose list has the TCP port only, and a merge patch replaces the list. The ports of a container go the same way.
# Expected: nothing to send, as for every other unchanged definition.
# Who is hurt: DNS, SIP, QUIC and syslog: the second run takes the UDP half of the Service away and reports "changed", and
# the next one puts nothing back.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ansible=7.7.0+dfsg-3+deb12u1 ansible-core=2.14.18-0+deb12u2 python3-jinja2 python3-markupsafe \
  python3-packaging python3-yaml >/dev/null 2>&1
dpkg-deb --fsys-tarfile ansible_*.deb | tar -x ./usr/lib/python3/dist-packages/ansible_collections/kubernetes
rm ansible_*.deb
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
from ansible_collections.kubernetes.core.plugins.module_utils.apply import apply_patch, annotate
from ansible.module_utils.common.dict_transformations import dict_merge

service = {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 'dns'}, 'spec': {'ports': [
    {'name': 'dns', 'port': 53, 'protocol': 'UDP'}, {'name': 'dns-tcp', 'port': 53, 'protocol': 'TCP'}]}}
pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'dns'}, 'spec': {'containers': [{
    'name': 'dns', 'image': 'dns', 'ports': [{'containerPort': 53, 'protocol': 'UDP'}, {'containerPort': 53, 'protocol': 'TCP'}]}]}}
for definition in service, pod:
    stored = dict_merge(definition, annotate(definition))  # what the first run creates
    _, patch = apply_patch(stored, definition)
    print(definition['kind'], 'second run sends:', patch['spec'])
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'EOF'
Service second run sends: {'ports': [{'name': 'dns-tcp', 'port': 53, 'protocol': 'TCP'}]}
Pod second run sends: {'containers': [{'name': 'dns', 'image': 'dns', 'ports': [{'containerPort': 53, 'protocol': 'TCP'}]}]}
EOF
diff want out
