#!/bin/sh
# kubernetes.core as in Debian 12's ansible 7.7.0: the module k8s_drain, with python3-kubernetes 22.6.0.
#
# Seen, 1: the wait for evicted Pods leaves the last one out: of one Pod nothing is waited for at all, whatever wait_timeout is, and of three the one that has
# the longest to go may be it. And terminate_grace_period: 0 is left out of the request.
# Expected: wait_timeout is "the length of time to wait in seconds for pod to be deleted"; and "the value zero indicates delete immediately".
# Seen, 2: a DaemonSet's Pod with an emptyDir counts as one with local data before it counts as a DaemonSet's: with ignore_daemonsets alone the drain fails for it,
# and with delete_emptydir_data too it is evicted, and comes back.
# Expected: "Ignore DaemonSet-managed pods", as kubectl drain does, whose filter for DaemonSets comes first.
# Who is hurt: playbooks that restart nodes: the node goes down while the last database is still writing; and log and network agents, which have an emptyDir as a
# rule, are evicted during the drain.
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
from types import SimpleNamespace

from ansible_collections.kubernetes.core.plugins.modules.k8s_drain import K8sDrainAnsible, filter_pods
from kubernetes.client import V1EmptyDirVolumeSource, V1ObjectMeta, V1OwnerReference, V1Pod, V1PodSpec, V1PodStatus, V1Volume
from kubernetes.client.rest import ApiException


class Api:  # a server whose Pods are gone after they were read twice
    def __init__(self):
        self.reads = []

    def read_namespaced_pod(self, namespace, name):
        self.reads.append(name)
        if self.reads.count(name) > 2:
            raise ApiException(status=404, reason='Not Found')
        return name


for names in (['a'], ['a', 'b'], ['a', 'b', 'c']):
    module = SimpleNamespace(params={'name': 'node', 'delete_options': {'terminate_grace_period': 0}}, fail_json=print)
    drain = K8sDrainAnsible(module, SimpleNamespace(client=None))
    drain._api_instance = api = Api()
    warning = drain.wait_for_pod_deletion([('default', name) for name in names], 600, 0)
    still = [name for name in names if api.reads.count(name) < 3]
    print(f'waited for {len(names)} Pods, read: {api.reads}, still there: {still}, warning: {warning}')
print('options for a grace period of zero:', drain._delete_options)

owner = V1OwnerReference(api_version='apps/v1', kind='DaemonSet', name='agent', uid='1')
agent = V1Pod(metadata=V1ObjectMeta(name='agent', namespace='logs', owner_references=[owner]), status=V1PodStatus(phase='Running'),
              spec=V1PodSpec(containers=[], volumes=[V1Volume(name='buffer', empty_dir=V1EmptyDirVolumeSource())]))
for local_data in (False, True):
    evicted, warnings, errors = filter_pods([agent], force=False, ignore_daemonset=True, delete_emptydir_data=local_data)
    print(f'a DaemonSet with an emptyDir, delete_emptydir_data {local_data}: evicted: {evicted}, errors: {errors}')
END
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'END'
waited for 1 Pods, read: [], still there: ['a'], warning: None
waited for 2 Pods, read: ['b', 'b', 'b', 'a'], still there: ['a'], warning: None
waited for 3 Pods, read: ['c', 'c', 'c', 'b', 'b', 'b', 'a'], still there: ['a'], warning: None
options for a grace period of zero: None
a DaemonSet with an emptyDir, delete_emptydir_data False: evicted: [], errors: ['cannot delete Pods with local storage: logs/agent.']
a DaemonSet with an emptyDir, delete_emptydir_data True: evicted: [('logs', 'agent')], errors: []
END
diff want out
