#!/bin/sh
# prometheus-query 3.5.1 (npm), a client for Prometheus' HTTP API.
#
# Seen: the values +Inf and -Inf, as Prometheus writes them, are read as NaN, because JavaScript's word is Infinity. One series with a native histogram is a
# TypeError, and the answer's other series are lost with it. The time 0 is left out, and Prometheus answers for now.
# Expected: Infinity, and a result for each series; the API's documentation names +Inf, -Inf and histograms among what it sends.
# Who is hurt: autoscalers, gates of roll-outs and pages in Node: histogram_quantile is +Inf when requests are slower than the last bucket, and a ratio is when
# there is nothing to divide by; `value > limit` is true for Infinity and false for NaN, so the worst case passes.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . prometheus-query@3.5.1 >/dev/null
cat >main.mjs <<'END'
import http from 'node:http'
import client from 'prometheus-query'

let data, asked
const server = http.createServer((request, response) => {
  asked = new URL(request.url, 'http://localhost').searchParams
  response.setHeader('Content-Type', 'application/json')
  response.end(JSON.stringify({ status: 'success', data }))
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const prometheus = new client.PrometheusDriver({ endpoint: `http://127.0.0.1:${server.address().port}`, baseURL: '/api/v1' })
const metric = { __name__: 'latency' }
for (const value of ['0.5', '+Inf', '-Inf', 'NaN']) {
  data = { resultType: 'vector', result: [{ metric, value: [1700000000, value] }] }
  const read = (await prometheus.instantQuery('latency')).result[0].value.value
  console.log(`${value}: ${read}, above 1: ${read > 1}`)
}
data.result.push({ metric: { __name__: 'sizes' }, histogram: [1700000000, { count: '1', sum: '2', buckets: [[0, '1', '2', '1']] }] })
await prometheus.instantQuery('latency or sizes').then(
  ({ result }) => console.log('with a native histogram, series:', result.length),
  (e) => console.log('with a native histogram:', e.message),
)
data.result = []
for (const time of [1000, 0]) {
  await prometheus.instantQuery('latency', time)
  console.log(`time ${time}:`, asked.get('time') > 1e9 ? 'now' : asked.get('time'))
}
server.close()
END
node main.mjs | tee out
cat >want <<'END'
0.5: 0.5, above 1: false
+Inf: NaN, above 1: false
-Inf: NaN, above 1: false
NaN: NaN, above 1: false
with a native histogram: Cannot read properties of undefined (reading '0')
time 1000: 1
time 0: now
END
diff want out
