#!/bin/sh
# kubernetes.core as in Debian 12's ansible 7.7.0: `wait: true` of `kubernetes.core.k8s`, with python3-kubernetes 22.6.0 for its objects.
#
# Seen: a StatefulSet whose updateStrategy is OnDelete is never ready, however many of its Pods are, and with a partition neither, because its two revisions stay
# apart. A Pod that has succeeded is not ready. A Job is ready as soon as it exists, before its first Pod and after it has failed.
# Expected: as `kubectl rollout status`, which takes the partition into account and refuses OnDelete with a message; a Pod and a Job by their ends.
# Who is hurt: playbooks with `wait: true`: a canary by partition or a database with OnDelete costs the whole timeout, two minutes, and fails the play though all
# is well; a migration's Job counts as done at once, and the next task begins.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ansible=7.7.0+dfsg-3+deb12u1 ansible-core=2.14.18-0+deb12u2 python3-jinja2 python3-markupsafe python3-packaging python3-kubernetes=22.6.0-2 \
  python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi python3-websocket python3-requests python3-charset-normalizer python3-idna \
  python3-chardet python3-google-auth python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa \
  python3-pkg-resources >/dev/null 2>&1
dpkg-deb --fsys-tarfile ansible_*.deb | tar -x ./usr/lib/python3/dist-packages/ansible_collections/kubernetes
rm ansible_*.deb
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'END'
from ansible_collections.kubernetes.core.plugins.module_utils.k8s import waiter
from kubernetes.dynamic.resource import ResourceInstance

READY = {'observedGeneration': 1, 'replicas': 3, 'readyReplicas': 3, 'updatedReplicas': 3, 'currentRevision': 'b', 'updateRevision': 'b'}


def stateful_set(strategy, **status):
    return {'kind': 'StatefulSet', 'metadata': {'name': 'a', 'generation': 1}, 'spec': {'replicas': 3, 'updateStrategy': strategy}, 'status': {**READY, **status}}


for name, thing in {
    'StatefulSet, all updated and ready': stateful_set({'type': 'RollingUpdate'}),
    'StatefulSet, OnDelete, all updated and ready': stateful_set({'type': 'OnDelete'}),
    'StatefulSet, partition 2, one of one updated': stateful_set(
        {'type': 'RollingUpdate', 'rollingUpdate': {'partition': 2}}, currentRevision='a', updatedReplicas=1),
    'Pod, running and ready': {'kind': 'Pod', 'metadata': {}, 'status': {'phase': 'Running', 'containerStatuses': [{'ready': True}]}},
    'Pod, succeeded': {'kind': 'Pod', 'metadata': {}, 'status': {'phase': 'Succeeded', 'containerStatuses': [{'ready': False}]}},
    'Job, just created': {'kind': 'Job', 'metadata': {}, 'status': {}},
    'Job, failed': {'kind': 'Job', 'metadata': {}, 'status': {'failed': 1, 'conditions': [{'type': 'Failed', 'status': 'True'}]}},
}.items():
    predicate = waiter.RESOURCE_PREDICATES.get(thing['kind'], waiter.exists)
    print(f'{name}: {"ready" if predicate(ResourceInstance(None, thing)) else "not ready"}')
END
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'END'
StatefulSet, all updated and ready: ready
StatefulSet, OnDelete, all updated and ready: not ready
StatefulSet, partition 2, one of one updated: not ready
Pod, running and ready: ready
Pod, succeeded: not ready
Job, just created: ready
Job, failed: ready
END
diff want out
