#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm), its topPods.
#
# Seen: the memory that a pod of several containers requests is reported as the limits of
# all containers but the last + the request of the last: 2 containers with requests of 100Mi and limits
# of 1Gi request 1,124Mi. Processor requests are added up right. With a limit missing, the pod
# requests less than it does: here 100Mi of 200Mi.
# Expected: the sum of the requests, 200Mi in both cases.
# Who is hurt: dashboards and bin packing in JavaScript; one container gives the right figure, so
# tests with simple pods pass.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
cat >main.mjs <<'EOF'
import { topPods } from '@kubernetes/client-node'
const container = (name, limits) => ({ name, resources: { requests: { cpu: '100m', memory: '100Mi' }, limits } })
const pod = (name, limits) => ({ metadata: { name }, spec: { containers: [container('a', limits), container('b', limits)] } })
const items = [pod('limited', { cpu: '1', memory: '1Gi' }), pod('unlimited', undefined)]
const api = { listPodForAllNamespaces: async () => ({ items }) }
const metrics = { getPodMetrics: async () => ({ items: [] }) }
for (const { Pod, CPU, Memory } of await topPods(api, metrics))
  console.log(`${Pod.metadata.name}: requests ${CPU.RequestTotal} cores and ${BigInt(Memory.RequestTotal) / 1048576n}Mi`)
EOF
node main.mjs | tee out
cat >want <<'EOF'
limited: requests 0.2 cores and 1124Mi
unlimited: requests 0.2 cores and 100Mi
EOF
diff want out
