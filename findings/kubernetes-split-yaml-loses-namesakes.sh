#!/bin/sh
# kubernetes-split-yaml 0.3.0 of Debian 12.
#
# Seen: the file of a resource is named after its name and kind only. Of two Services "web" in two namespaces the second
# overwrites the first; the log has two lines "Creating file", and the exit code is 0.
# Expected: an error for a file that this run has written, or the namespace in the name, as the template `tpl_ns` has it.
# Who is hurt: repositories that are made from the output of `kustomize build` or `helm template` for several namespaces: each
# namespace's Role "reader" and NetworkPolicy "default-deny" but the last one's is gone, and a pruning apply deletes them.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download kubernetes-split-yaml=0.3.0-1+b7 >/dev/null 2>&1
dpkg-deb -x ./*.deb .
cat >all.yaml <<'EOF'
apiVersion: v1
kind: Service
metadata: {name: web, namespace: blue}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: green}
---
apiVersion: v1
kind: Secret
metadata: {name: web, namespace: green}
EOF
{
  usr/bin/kubernetes-split-yaml all.yaml >log 2>&1
  echo "exit code $?"
  grep -h namespace generated/*
  usr/bin/kubernetes-split-yaml --template_sel tpl_ns --outdir by-namespace all.yaml >log 2>&1
  find by-namespace -type f | sort
} | tee out
cat >want <<'EOF'
exit code 0
metadata: {name: web, namespace: green}
metadata: {name: web, namespace: green}
by-namespace/blue/web.Service.yaml
by-namespace/green/web.Secret.yaml
by-namespace/green/web.Service.yaml
EOF
diff want out
