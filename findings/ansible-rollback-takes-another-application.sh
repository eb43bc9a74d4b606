#!/bin/sh
# kubernetes.core as in Debian 12's ansible 7.7.0: the module k8s_rollback.
#
# Seen, 1: the list of ReplicaSets is asked for with the keys of the selector alone, app for {app: web}: it has those of each Deployment in the namespace that
# has such a label, and the first one with the number of the revision before is taken. What is sent can be the template of another application.
# Expected: the ReplicaSets of this Deployment, as `kubectl rollout undo` finds them, by the whole selector and their owner.
# Seen, 2: the patch replaces all annotations of the Deployment by the one of the revision.
# Expected: the annotations left alone. kubectl's last-applied-configuration is among them, and what the owner, the cost centre or the next rollout is.
# Who is hurt: whoever rolls back in an emergency: the server refuses a template whose labels are another application's ("selector does not match template
# labels"), which it is where both have the same; and after the rollback the next `kubectl apply` no longer knows which fields it owns.
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
import json
from types import SimpleNamespace

from ansible_collections.kubernetes.core.plugins.module_utils.k8s.service import K8sService
from ansible_collections.kubernetes.core.plugins.modules.k8s_rollback import perform_action
from kubernetes.dynamic.resource import ResourceInstance


def replica_set(app, revision, image):
    labels = {'app': app, 'pod-template-hash': image}
    return {'apiVersion': 'apps/v1', 'kind': 'ReplicaSet', 'metadata': {'name': f'{app}-{image}', 'namespace': 'a', 'labels': labels,
            'annotations': {'deployment.kubernetes.io/revision': str(revision)}},
            'spec': {'template': {'metadata': {'labels': dict(labels)}, 'spec': {'containers': [{'name': app, 'image': image}]}}}}


SETS = [replica_set('database', 2, 'db:2'), replica_set('web', 1, 'web:1'), replica_set('web', 2, 'web:2'), replica_set('web', 3, 'web:3')]


def get(_, **query):
    print('list of ReplicaSets:', query['label_selector'])
    conditions = [condition.partition('=') for condition in query['label_selector'].split(',')]
    items = [s for s in SETS if all(s['metadata']['labels'].get(key, value) == (value or s['metadata']['labels'][key]) for key, _, value in conditions)]
    return ResourceInstance(None, {'apiVersion': 'apps/v1', 'kind': 'ReplicaSetList', 'items': items})


module = SimpleNamespace(check_mode=True, params={'kind': 'Deployment', 'api_version': 'apps/v1', 'namespace': 'a', 'name': 'web'})
service = K8sService(SimpleNamespace(resource=lambda kind, version: kind, get=get), module)
annotations = {'deployment.kubernetes.io/revision': '3', 'kubectl.kubernetes.io/last-applied-configuration': '{}', 'team': 'shop'}
result = perform_action(service, {'metadata': {'name': 'web', 'annotations': annotations}, 'spec': {'selector': {'matchLabels': {'app': 'web'}}}})
for operation in result['body']:
    print(json.dumps(operation))
END
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'END'
list of ReplicaSets: app
{"op": "replace", "path": "/spec/template", "value": {"metadata": {"labels": {"app": "database"}}, "spec": {"containers": [{"name": "database", "image": "db:2"}]}}}
{"op": "replace", "path": "/metadata/annotations", "value": {"deployment.kubernetes.io/revision": "2"}}
END
diff want out
