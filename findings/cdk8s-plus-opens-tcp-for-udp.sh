#!/bin/sh
# cdk8s-plus-33 2.5.57 with cdk8s 2.70.106 and constructs 10.8.1 (npm), its network policies.
#
# Seen: connections.allowTo of a Pod whose container has the port 53 for UDP writes two policies that allow TCP 53, and so nothing that the Pod listens to.
# NetworkPolicyPort.allTcp() and allUdp() are "port 0 to 65535"; the API server refuses the port 0 ("must be between 1 and 65535, inclusive").
# Expected: the protocol of the container's port, which its Service gets right, and a range that the server takes (or no port at all, which is all).
# Who is hurt: charts with DNS, syslog or QUIC behind policies: as soon as one exists the traffic that it was written for is dropped, and a rehearsal
# without a network plugin shows nothing.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . cdk8s-plus-33@2.5.57 cdk8s@2.70.106 constructs@10.8.1 >/dev/null
cat >main.cjs <<'END'
const { Testing } = require('cdk8s')
const { Deployment, NetworkPolicy, NetworkPolicyIpBlock, NetworkPolicyPort, Pod, Protocol } = require('cdk8s-plus-33')

const chart = Testing.chart()
const web = new Pod(chart, 'web', { containers: [{ image: 'web', portNumber: 80 }] })
const dns = new Deployment(chart, 'dns', { containers: [{ image: 'dns', ports: [{ number: 53, protocol: Protocol.UDP }] }] })
dns.exposeViaService()
web.connections.allowTo(dns)
const policy = new NetworkPolicy(chart, 'policy', { selector: web })
policy.addEgressRule(NetworkPolicyIpBlock.anyIpv4(chart, 'any'), [NetworkPolicyPort.allTcp(), NetworkPolicyPort.allUdp()])
for (const { kind, spec } of Testing.synth(chart)) {
  if (kind === 'Service') console.log('Service:', JSON.stringify(spec.ports))
  if (kind === 'NetworkPolicy') console.log(`${spec.policyTypes}:`, JSON.stringify((spec.egress ?? spec.ingress)[0].ports))
}
END
node main.cjs | tee out
cat >want <<'END'
Egress: [{"port":53,"protocol":"TCP"}]
Ingress: [{"port":53,"protocol":"TCP"}]
Service: [{"port":53,"protocol":"UDP","targetPort":53}]
Egress: [{"endPort":65535,"port":0,"protocol":"TCP"},{"endPort":65535,"port":0,"protocol":"UDP"}]
END
diff want out
