#!/bin/sh
# cdk8s-plus-33 2.5.57 with cdk8s 2.70.106 and constructs 10.8.1 (npm), the property `spread` of its workloads.
#
# Seen: `spread: true` is a required anti-affinity by host and by zone: no two Pods of the Deployment in one zone. In a cluster of three zones the fourth Pod is
# never placed, with one zone the second, and a rolling update with its default strategy waits for a place that there is not. A
# scheduler that follows the rules is played through below.
# Expected: "Automatically spread pods across hostname and zones", with a link to Kubernetes' default constraints, which are soft (ScheduleAnyway) and even out.
# Who is hurt: Deployments with more replicas than zones: some Pods stay Pending for ever; with as many as zones each roll-out stands still, because the new Pod
# must wait for an old one that is only taken away when the new one is ready.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . cdk8s-plus-33@2.5.57 cdk8s@2.70.106 constructs@10.8.1 >/dev/null
cat >main.cjs <<'END'
const { Testing } = require('cdk8s')
const { Deployment } = require('cdk8s-plus-33')

const chart = Testing.chart()
new Deployment(chart, 'web', { containers: [{ image: 'web' }], replicas: 6, spread: true })
const [{ spec }] = Testing.synth(chart)
const { podAntiAffinity } = spec.template.spec.affinity
const rules = podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution
const own = rules.every(({ labelSelector }) => JSON.stringify(labelSelector) === JSON.stringify(spec.selector))
console.log('kinds of rules:', Object.keys(podAntiAffinity).join(), 'against its own Pods:', own, 'by:', rules.map(({ topologyKey }) => topologyKey).join())
console.log('topologySpreadConstraints:', JSON.stringify(spec.template.spec.topologySpreadConstraints))

const nodes = Array.from({ length: 9 }, (_, i) => ({ 'kubernetes.io/hostname': `node-${i}`, 'topology.kubernetes.io/zone': `zone-${i % 3}` }))
const placed = []
for (let i = 0; i < spec.replicas; i++) {
  const node = nodes.find((node) => placed.every((other) => rules.every(({ topologyKey }) => node[topologyKey] !== other[topologyKey])))
  if (node) placed.push(node)
}
console.log(`of ${spec.replicas} Pods on ${nodes.length} nodes in three zones, placed: ${placed.length}; strategy: ${JSON.stringify(spec.strategy)}`)
END
node main.cjs | tee out
cat >want <<'END'
kinds of rules: requiredDuringSchedulingIgnoredDuringExecution against its own Pods: true by: kubernetes.io/hostname,topology.kubernetes.io/zone
topologySpreadConstraints: undefined
of 6 Pods on 9 nodes in three zones, placed: 3; strategy: {"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"}
END
diff want out
