#!/bin/sh
# prom-client 15.1.3 (npm): summaries, and the metrics of several processes by its AggregatorRegistry.
#
# Seen: of four workers of a cluster that answer in 1 second each, the median is 4 seconds and the 99th percentile too: quantiles are added up, as is a time such as
# last_success_timestamp_seconds, which is in the year 2185. A summary with maxAgeSeconds whose observations are all too old has quantiles of 0, where
# Prometheus' own clients write NaN.
# Expected: no quantile, or NaN: quantiles of several processes cannot be computed from theirs, and a median of nothing is not 0.
# Who is hurt: services on Node's cluster module: latency grows with the number of workers, an alert on "no success for an hour" by a gauge never fires, and a
# service that gets no requests any more has the best latency of all.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . prom-client@15.1.3 >/dev/null
cat >main.mjs <<'EOF'
import client from 'prom-client'

const worker = () => {
  const registers = [new client.Registry()]
  const latency = new client.Summary({ name: 'latency_seconds', help: 'Latency.', percentiles: [0.5, 0.99], registers })
  for (let i = 0; i < 100; i++) latency.observe(1)
  new client.Gauge({ name: 'last_success_timestamp_seconds', help: 'Time.', registers }).set(1700000000)
  return registers[0].getMetricsAsJSON()
}
const samples = (text) => text.split('\n').filter((line) => line && !line.startsWith('#')).join('\n')
const workers = await Promise.all([worker(), worker(), worker(), worker()])
console.log(samples(await client.AggregatorRegistry.aggregate(workers).metrics()))

const registers = [new client.Registry()]
const idle = new client.Summary({ name: 'idle_seconds', help: 'Latency.', percentiles: [0.99], maxAgeSeconds: 0.2, ageBuckets: 2, registers })
idle.observe(1)
console.log(samples(await registers[0].metrics()))
await new Promise((resolve) => setTimeout(resolve, 1000))
console.log(samples(await registers[0].metrics()))
EOF
node main.mjs | tee out
cat >want <<'EOF'
latency_seconds{quantile="0.5"} 4
latency_seconds{quantile="0.99"} 4
latency_seconds_sum 400
latency_seconds_count 400
last_success_timestamp_seconds 6800000000
idle_seconds{quantile="0.99"} 1
idle_seconds_sum 1
idle_seconds_count 1
idle_seconds{quantile="0.99"} 0
idle_seconds_sum 1
idle_seconds_count 1
EOF
diff want out
