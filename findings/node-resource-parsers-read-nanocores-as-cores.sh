#!/bin/sh
# kubernetes-resource-parser 0.1.0 and k8s-resource-parser 0.2.2 (npm).
#
# Seen: cpuParser of the first knows the suffix m alone and ignores every other: "156340235n",
# as the metrics API reports the usage of a container, is 156,340,235 cores, "2k" is 2. Its
# memoryParser drops fractions ("0.5Gi" is 0) and exponents ("129e6" is 129), both of which the
# documentation of Kubernetes uses as examples, and returns NaN for millibytes. The second throws
# at "n" and "u".
# Expected: the suffixes n and u of a quantity, or an error for a suffix that is not known.
# Who is hurt: dashboards and autoscalers in JavaScript that divide usage by requests: usage
# is a billion times too large, or the page fails once metrics-server reports nanocores.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . kubernetes-resource-parser@0.1.0 k8s-resource-parser@0.2.2 >/dev/null
cat >main.cjs <<'EOF'
const parsers = { 'kubernetes-resource-parser': require('kubernetes-resource-parser'), 'k8s-resource-parser': require('k8s-resource-parser') }
const show = (f, text) => { try { return f(text) } catch { return 'throws' } }
for (const [name, p] of Object.entries(parsers)) {
  for (const text of ['250m', '156340235n', '1500u', '2k']) console.log(`${name}: cpu ${text} is ${show(p.cpuParser, text)}`)
  for (const text of ['512Mi', '0.5Gi', '129e6', '128974848000m']) console.log(`${name}: memory ${text} is ${show(p.memoryParser, text)}`)
}
EOF
node main.cjs | tee out
cat >want <<'EOF'
kubernetes-resource-parser: cpu 250m is 0.25
kubernetes-resource-parser: cpu 156340235n is 156340235
kubernetes-resource-parser: cpu 1500u is 1500
kubernetes-resource-parser: cpu 2k is 2
kubernetes-resource-parser: memory 512Mi is 536870912
kubernetes-resource-parser: memory 0.5Gi is 0
kubernetes-resource-parser: memory 129e6 is 129
kubernetes-resource-parser: memory 128974848000m is NaN
k8s-resource-parser: cpu 250m is 0.25
k8s-resource-parser: cpu 156340235n is throws
k8s-resource-parser: cpu 1500u is throws
k8s-resource-parser: cpu 2k is 2000
k8s-resource-parser: memory 512Mi is 536870912
k8s-resource-parser: memory 0.5Gi is 536870912
k8s-resource-parser: memory 129e6 is 129000000
k8s-resource-parser: memory 128974848000m is 128974848
EOF
diff want out
