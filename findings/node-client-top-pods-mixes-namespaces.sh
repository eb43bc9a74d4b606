#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm), its topPods.
#
# Seen: over all namespaces, topPods finds the usage of a Pod by its name alone: of two Pods redis-0 in the namespaces a
# and b, both get the figures of whichever the metrics API lists last. And one Pod that requests 1.5Gi, or limits
# itself to 0.5Gi, makes the whole call fail: "Cannot convert 1.5 to a BigInt".
# Expected: each Pod's own usage; 1.5Gi is a quantity like 1536Mi, and the API's documentation uses such fractions.
# Who is hurt: dashboards and autoscalers in JavaScript. Pods of StatefulSets have the same names in each environment, so
# the idle database of staging shows the load of production, or the reverse. No error; one namespace at a time is right.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
cat >main.mjs <<'EOF'
import { topPods } from '@kubernetes/client-node'

const pod = (namespace, memory) => ({
  metadata: { namespace, name: 'redis-0' },
  spec: { containers: [{ name: 'main', resources: { requests: { memory } } }] },
})
const usage = (namespace, cpu, memory) => ({
  metadata: { namespace, name: 'redis-0' },
  containers: [{ name: 'main', usage: { cpu, memory } }],
})
const metrics = { getPodMetrics: async () => ({ items: [usage('a', '3', '8Gi'), usage('b', '1m', '10Mi')] }) }
for (const memory of ['1536Mi', '1.5Gi']) {
  const api = { listPodForAllNamespaces: async () => ({ items: [pod('a', '8Gi'), pod('b', memory)] }) }
  try {
    for (const { Pod, CPU, Memory } of await topPods(api, metrics))
      console.log(`${Pod.metadata.namespace}/${Pod.metadata.name} uses ${CPU.CurrentUsage} cores, ${Memory.CurrentUsage} bytes`)
  } catch (e) {
    console.log(`with ${memory}: ${e.message}`)
  }
}
EOF
node main.mjs | tee out
cat >want <<'EOF'
a/redis-0 uses 0.001 cores, 10485760 bytes
b/redis-0 uses 0.001 cores, 10485760 bytes
with 1.5Gi: Cannot convert 1.5 to a BigInt
EOF
diff want out
