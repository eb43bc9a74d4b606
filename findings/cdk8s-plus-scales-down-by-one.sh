#!/bin/sh
# cdk8s-plus-33 2.5.57 with cdk8s 2.70.106 and constructs 10.8.1 (npm), its HorizontalPodAutoscaler.
#
# Seen: without rules for scaling down, the manifest has one policy that takes away minReplicas Pods in five minutes: with the default minimum of 1 it takes more
# than four hours from 50 Pods to one, with a minimum of 10 twenty minutes. It is there too if only the stabilization window is set.
# Expected: "Scale down to minReplica count with a 5 minute stabilization window", which is the default in the documentation of this property, and also
# Kubernetes' own: 100 % in 15 seconds.
# Who is hurt: services that cdk8s scales: they grow in a minute and keep their nodes for hours after each peak; whoever raises the minimum finds that the way
# down is faster.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . cdk8s-plus-33@2.5.57 cdk8s@2.70.106 constructs@10.8.1 >/dev/null
cat >main.cjs <<'END'
const { Duration, Testing } = require('cdk8s')
const { Deployment, HorizontalPodAutoscaler } = require('cdk8s-plus-33')

const cases = {
  'no minimum': {},
  'minimum 10': { minReplicas: 10 },
  'a window of one minute': { scaleDown: { stabilizationWindow: Duration.minutes(1) } },
}
for (const [name, settings] of Object.entries(cases)) {
  const chart = Testing.chart()
  const target = new Deployment(chart, 'web', { containers: [{ image: 'web' }] })
  new HorizontalPodAutoscaler(chart, 'scaler', { target, maxReplicas: 50, ...settings })
  const { spec } = Testing.synth(chart).find(({ kind }) => kind === 'HorizontalPodAutoscaler')
  console.log(`${name}:`, JSON.stringify(spec.behavior.scaleDown))
}
END
node main.cjs | tee out
cat >want <<'END'
no minimum: {"policies":[{"periodSeconds":300,"type":"Pods","value":1}],"selectPolicy":"Max","stabilizationWindowSeconds":300}
minimum 10: {"policies":[{"periodSeconds":300,"type":"Pods","value":10}],"selectPolicy":"Max","stabilizationWindowSeconds":300}
a window of one minute: {"policies":[{"periodSeconds":300,"type":"Pods","value":1}],"selectPolicy":"Max","stabilizationWindowSeconds":60}
END
diff want out
