#!/bin/sh
# cdk8s 2.70.106 with constructs 10.8.1 (npm).
#
# Seen: Duration.days(1).toIsoString() is PT1D, which is no ISO 8601 (days stand before the T: P1D), and Duration.parse
# reads PT1D and refuses P1D, P7D and PT0.5S. An hour is "60 minutes" in toHumanString as soon as days stand before it. And
# Names.toDnsLabel, by its comment a name "compatible DNS_LABEL from RFC-1123", keeps the characters "_" and ".".
# Expected: P1D both ways; "1 day 1 hour"; a label of letters, digits and hyphens.
# Who is hurt: charts that write a duration into a custom resource: up to 23 hours the text is right, from a day on each
# parser refuses it. And charts with a "_" in an id, whose objects the server refuses, or with a ".", where
# it depends on the kind: a ConfigMap web.v2-c80b29cb is accepted, a Service or Namespace of the same chart is not.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . cdk8s@2.70.106 constructs@10.8.1 >/dev/null
cat >main.mjs <<'EOF'
import { ApiObject, App, Chart, Duration, Names } from 'cdk8s'

for (const duration of [Duration.hours(23), Duration.hours(24), Duration.hours(25), Duration.days(7)])
  console.log(duration.toIsoString(), '=', duration.toHumanString())
for (const text of ['PT1D', 'P1D', 'P7D', 'PT0.5S']) {
  try {
    console.log(`${text}: ${Duration.parse(text).toMilliseconds()} ms`)
  } catch (e) {
    console.log(`${text}: ${e.message}`)
  }
}
const app = new App()
for (const id of ['web', 'web.v2', 'web_v2']) {
  const name = Names.toDnsLabel(new ApiObject(new Chart(app, id), 'site', { apiVersion: 'v1', kind: 'Service' }))
  console.log(`${id}: ${name} ${/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name) ? 'is a label' : 'is no label'}`)
}
EOF
node main.mjs | tee out
cat >want <<'EOF'
PT23H = 23 hours
PT1D = 1 day
PT1D1H = 1 day 60 minutes
PT7D = 7 days
PT1D: 86400000 ms
P1D: Not a valid ISO duration: P1D
P7D: Not a valid ISO duration: P7D
PT0.5S: Not a valid ISO duration: PT0.5S
web: web-site-c85f5a45 is a label
web.v2: web.v2-site-c80b29cb is no label
web_v2: web_v2-site-c8a9fbe0 is no label
EOF
diff want out
