#!/bin/sh
# kubernetes.core as in Debian 12's ansible 7.7.0: label_selectors of `kubernetes.core.k8s`, which choose what of a file is sent.
#
# Seen: a key with a prefix is not known before in and notin: `app.kubernetes.io/name in (web)` looks for a label of this whole name and finds none, and notin too. A
# key of one letter likewise. An object without labels is never chosen, not by `app!=web` or `!app` either, and two conditions in one text, `app=web,tier=front`,
# are a label app with the value "web,tier=front". Each time the module reports "ok" and nothing changed.
# Expected: the selectors of the API, to whose documentation the option's text refers: as in `kubectl apply -l`.
# Who is hurt: playbooks that apply a part of a file: with the labels that Kubernetes recommends nothing is applied, and "everything but the database" leaves
# out each object without labels, without an error.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ansible=7.7.0+dfsg-3+deb12u1 >/dev/null 2>&1
dpkg-deb --fsys-tarfile ansible_*.deb | tar -x ./usr/lib/python3/dist-packages/ansible_collections/kubernetes
rm ansible_*.deb
cat >main.py <<'END'
from ansible_collections.kubernetes.core.plugins.module_utils.selector import LabelSelectorFilter

OBJECTS = {
    'web': {'app.kubernetes.io/name': 'web', 'app': 'web', 'tier': 'front', 'x': '1'},
    'database': {'app.kubernetes.io/name': 'database', 'app': 'database'},
    'no labels': None,
}
for selectors in (
    ['app in (web)'],
    ['app.kubernetes.io/name=web'],
    ['app.kubernetes.io/name in (web)'],
    ['app.kubernetes.io/name notin (web)'],
    ['x in (1)'],
    ['app=web', 'tier=front'],
    ['app=web,tier=front'],
    ['app!=web'],
    ['!app'],
):
    chosen = []
    for name, labels in OBJECTS.items():
        metadata = {'name': name} if labels is None else {'name': name, 'labels': labels}
        if LabelSelectorFilter(selectors).isMatching({'kind': 'ConfigMap', 'metadata': metadata}):
            chosen.append(name)
    print(f'{selectors}: {", ".join(chosen) or "none"}')
END
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'END'
['app in (web)']: web
['app.kubernetes.io/name=web']: web
['app.kubernetes.io/name in (web)']: none
['app.kubernetes.io/name notin (web)']: none
['x in (1)']: none
['app=web', 'tier=front']: web
['app=web,tier=front']: none
['app!=web']: database
['!app']: none
END
diff want out
