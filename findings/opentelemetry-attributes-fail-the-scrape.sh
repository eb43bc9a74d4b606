#!/bin/sh
# @opentelemetry/exporter-prometheus 0.223.0 with sdk-metrics 2.12.1 (npm), scraped by prometheus 2.42 of Debian 12.
#
# Seen: two attributes that Prometheus has one name for (k8s.pod.name and k8s_pod_name) are written as one label twice, and a name that begins with a digit as it
# is. Prometheus refuses the whole page for either, so that all metrics of the process are gone. Two counters "requests" and "requests_total" are written
# as one series with two values, of which Prometheus keeps the first.
# Expected: what OpenTelemetry specifies: the values of such attributes are joined with ";", and a leading digit gets an underscore, as it has in names of metrics.
# Who is hurt: services with attributes from elsewhere, such as labels of Kubernetes or fields of a request: one of them at one place takes the
# target down, from the first request that has it until the restart.
set -eu
dir=$(mktemp -d); pids=; trap 'kill $pids 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download prometheus=2.42.0+ds-5+deb12u1 >/dev/null 2>&1
dpkg-deb -x prometheus_*.deb .
rm prometheus_*.deb
npm install --silent --no-save --prefix . @opentelemetry/exporter-prometheus@0.223.0 @opentelemetry/sdk-metrics@2.12.1 @opentelemetry/api@1.9.0 >/dev/null
port=${FINDING_PORT:-23790}
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import http from 'node:http'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'

const jobs = {
  plain: (meter) => meter.createCounter('handled').add(1, { 'k8s.pod.name': 'a' }),
  joined: (meter) => meter.createCounter('handled').add(1, { 'k8s.pod.name': 'a', k8s_pod_name: 'b' }),
  digit: (meter) => meter.createCounter('handled').add(1, { '5xx': true }),
  twice: (meter) => { meter.createCounter('requests').add(1); meter.createCounter('requests_total').add(2) },
}
const exporters = {}
for (const [job, count] of Object.entries(jobs)) {
  exporters[job] = new PrometheusExporter({ preventServerStart: true })
  const meter = new MeterProvider({ readers: [exporters[job]] }).getMeter('finding')
  meter.createCounter('other').add(1)
  count(meter)
}
const server = http.createServer((request, response) => exporters[request.url.slice(1)].getMetricsRequestHandler(request, response))
server.listen(0, '127.0.0.1', () => {
  fs.writeFileSync('config.tmp', JSON.stringify({
    global: { scrape_interval: '1s' },
    scrape_configs: Object.keys(jobs).map((job) => ({ job_name: job, metrics_path: `/${job}`, static_configs: [{ targets: [`127.0.0.1:${server.address().port}`] }] })),
  }))
  fs.renameSync('config.tmp', 'config.yml')
})
EOF
node main.mjs & pids=$!
for _ in $(seq 600); do test -e config.yml && break; sleep 0.1; done
usr/bin/prometheus --config.file=config.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:"$port" --log.level=error >prometheus.log 2>&1 & pids="$pids $!"
cat >show.mjs <<'EOF'
const address = `http://127.0.0.1:${process.argv[2]}/api/v1/`
const get = async (path) => (await (await fetch(address + path)).json()).data
let targets = []
for (let i = 0; i < 300; i++) {
  try {
    targets = (await get('targets')).activeTargets
    if (targets.length === 4 && targets.every(({ health }) => health !== 'unknown')) break
  } catch { /* not up yet */ }
  await new Promise((resolve) => setTimeout(resolve, 200))
}
targets.sort((a, b) => (a.labels.job < b.labels.job ? -1 : 1))
for (const { labels, health, lastError } of targets) {
  const { result } = await get(`query?query=${encodeURIComponent(`{job="${labels.job}",__name__=~"other_total|handled_total|requests_total"}`)}`)
  console.log(`${labels.job}: ${health}${lastError && `, ${lastError}`}`)
  console.log(`  series: ${result.map(({ metric, value }) => `${metric.__name__} ${value[1]}`).sort().join(', ') || 'none'}`)
}
EOF
node show.mjs "$port" | tee out
cat >want <<'EOF'
digit: down, expected label name, got "INVALID"
  series: none
joined: down, label name "k8s_pod_name" is not unique: invalid sample
  series: none
plain: up
  series: handled_total 1, other_total 1
twice: up
  series: other_total 1, requests_total 1
EOF
diff want out
