#!/bin/sh
# @backstage/plugin-kubernetes-common 0.9.15 (npm), detectErrors, from which Backstage's Kubernetes page shows errors.
#
# Seen: a Pod whose init container is in CrashLoopBackOff or cannot pull its image has no errors, nor has a Pod that cannot be placed or was
# evicted. An autoscaler with its minimum equal to its maximum is an error of severity 8, twice that of a crashing container.
# Expected: the states of initContainerStatuses (sidecars are there as well) and of the Pod itself; no error for what was asked for.
# Who is hurt: teams that look at Backstage instead of kubectl: a release that hangs in its migration's init container, or for lack of a
# node, is shown without an error, and one of a fixed size with the gravest.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @backstage/plugin-kubernetes-common@0.9.15 >/dev/null 2>&1
cat >main.cjs <<'EOF'
const { detectErrors } = require('@backstage/plugin-kubernetes-common')

const waiting = (reason) => ({ name: 'c', ready: false, restartCount: 0, state: { waiting: { reason, message: reason } } })
const pod = (status) => ({ type: 'pods', resources: [{ metadata: { name: 'a', namespace: 'n' }, spec: { containers: [{ name: 'c' }] }, status }] })
const cases = {
  'container in CrashLoopBackOff': pod({ containerStatuses: [waiting('CrashLoopBackOff')] }),
  'init container in CrashLoopBackOff': pod({ initContainerStatuses: [{ ...waiting('CrashLoopBackOff'), restartCount: 9 }] }),
  'init container in ImagePullBackOff': pod({ initContainerStatuses: [waiting('ImagePullBackOff')] }),
  'Pod without a node': pod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' }] }),
  'Pod that was evicted': pod({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory' }),
  'autoscaler from 3 to 3': { type: 'horizontalpodautoscalers', resources: [{ metadata: { name: 'a', namespace: 'n' }, spec: { minReplicas: 3, maxReplicas: 3 }, status: { currentReplicas: 3 } }] },
}
for (const [name, resources] of Object.entries(cases)) {
  const errors = detectErrors({ items: [{ cluster: { name: 'c' }, resources: [resources], podMetrics: [], errors: [] }] }).get('c')
  console.log(`${name}: ${errors.map((e) => `${e.type} (severity ${e.severity})`).join(', ') || 'no error'}`)
}
EOF
node main.cjs | tee out
cat >want <<'EOF'
container in CrashLoopBackOff: container-waiting (severity 4)
init container in CrashLoopBackOff: no error
init container in ImagePullBackOff: no error
Pod without a node: no error
Pod that was evicted: no error
autoscaler from 3 to 3: hpa-max-current-replicas (severity 8)
EOF
diff want out
