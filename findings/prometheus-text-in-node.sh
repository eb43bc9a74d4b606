#!/bin/sh
# parse-prometheus-text-format 1.1.1 and prom2javascript 0.2.0 (npm), parsers of Prometheus' text format.
#
# Seen: the first puts all series of a histogram or a summary together: the labels are gone, the buckets are those of
# the last series, and sum and count are missing. The second keeps them, and fails for the whole text if one name
# has a colon (as the names of recording rules in /federate) or a blank stands around a label.
# Expected: a histogram for each set of labels, as the first, which "aims to be compatible with prom2json", promises;
# both spellings are in the format's description.
# Who is hurt: dashboards, autoscalers and tests in Node that read /metrics of a Kubernetes component, whose histograms
# all have labels (verb, resource, operation): a quantile is that of the last series in the text, here
# 1 of 2 requests within 0.1 s where it is 95 of 100. No error; counters and gauges are right.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . parse-prometheus-text-format@1.1.1 prom2javascript@0.2.0 >/dev/null
cat >main.mjs <<'EOF'
import { getMetricsFromIterator } from 'prom2javascript'
import parsePrometheusTextFormat from 'parse-prometheus-text-format'

const histogram = `# TYPE request_seconds histogram
request_seconds_bucket{verb="GET",le="0.1"} 95
request_seconds_bucket{verb="GET",le="+Inf"} 100
request_seconds_sum{verb="GET"} 12
request_seconds_count{verb="GET"} 100
request_seconds_bucket{verb="PUT",le="0.1"} 1
request_seconds_bucket{verb="PUT",le="+Inf"} 2
request_seconds_sum{verb="PUT"} 3
request_seconds_count{verb="PUT"} 2`
const parsers = {
  'parse-prometheus-text-format': (text) => parsePrometheusTextFormat(text + '\n').map((family) => family.metrics),
  prom2javascript: async (text) => Object.values(await getMetricsFromIterator(text.split('\n').values())).map((family) => family.data),
}
for (const text of [histogram, 'job:requests:rate5m{job="a"} 7', 'requests { job = "a" } 7'])
  for (const [name, parse] of Object.entries(parsers)) {
    let result
    try { result = JSON.stringify(await parse(text)) } catch (e) { result = e.message }
    console.log(`${name}: ${result}`)
  }
EOF
node main.mjs | tee out
cat >want <<'EOF'
parse-prometheus-text-format: [[{"buckets":{"0.1":"1","+Inf":"2"}}]]
prom2javascript: [[{"labels":{"verb":"GET"},"buckets":{"0.1":95,"+Inf":100},"count":100,"sum":12},{"labels":{"verb":"PUT"},"buckets":{"0.1":1,"+Inf":2},"count":2,"sum":3}]]
parse-prometheus-text-format: [[{"value":"7","labels":{"job":"a"}}]]
prom2javascript: Unable to parse metric [job:requests:rate5m{job="a"} 7]
parse-prometheus-text-format: [[{"value":"7","labels":{"job":"a"}}]]
prom2javascript: Unable to parse metric [requests { job = "a" } 7]
EOF
diff want out
