#!/bin/sh
# @codedependant/kubernetes-leader-election 1.0.1 with @kubernetes/client-node 1.4.0 (npm).
#
# Seen: an elector asks for the lease three times in the first lease duration after its start, and then only when the
# lease is deleted. The leader's release of the lease, which the watch reports to it, it ignores; and a lease that
# expires makes no event. So a standby that has run for a while leads neither after the leader's stop nor after its crash.
# Expected: as its documentation promises, once the lease has expired "the election process will start again".
# Who is hurt: deployments of two replicas for failover: it works if the first dies within seconds of their start, as
# in a try by hand; later all work of the leader stops without an error, until a Pod is restarted.
#
# A small server holds the one lease; it refuses writes with an old resourceVersion, as the API does.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @codedependant/kubernetes-leader-election@1.0.1 @kubernetes/client-node@1.4.0 >/dev/null
cat >main.mjs <<'EOF'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

let lease
let version = 0
const watches = new Set()
const line = (type) => JSON.stringify({ type, object: lease }) + '\n'
const publish = (type) => watches.forEach((w) => w.write(line(type)))
const server = http.createServer(async (req, res) => {
  const answer = (code, body) => res.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  if (req.method === 'GET' && req.url.includes('watch=true')) {
    res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    if (lease) res.write(line('ADDED'))
    watches.add(res)
    res.on('close', () => watches.delete(res))
    return
  }
  if (req.method === 'GET') return lease ? answer(200, lease) : answer(404, { kind: 'Status', code: 404 })
  let text = ''
  for await (const part of req) text += part
  const sent = JSON.parse(text)
  if (sent.metadata.resourceVersion !== lease?.metadata.resourceVersion) return answer(409, { kind: 'Status', code: 409 })
  const type = lease ? 'MODIFIED' : 'ADDED'
  lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...sent, metadata: { ...sent.metadata, resourceVersion: `${++version}` } }
  publish(type)
  answer(200, lease)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${server.address().port}`
writeFileSync('config', JSON.stringify({
  apiVersion: 'v1', kind: 'Config', 'current-context': 'c',
  clusters: [{ name: 'c', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  users: [{ name: 'u', user: { token: 't' } }],
}))
process.env.KUBECONFIG = 'config'
process.env.KUBERNETES_SERVICE_HOST = '127.0.0.1'
const { Elector } = (await import('@codedependant/kubernetes-leader-election')).default
const start = async (identity) => {
  const elector = new Elector({ identity, auto_close: false, lease_duration_sec: 6, renew_interval_ms: 1000 })
  await elector.start()
  return elector
}
const first = await start('first')
await sleep(1000)
const second = await start('second')
const show = (when) => console.log(`${when}: held by ${lease?.spec.holderIdentity ?? 'none'}, second leads: ${second.current_leader}`)
await sleep(9000)
show('both run')
await first.stop()
show('first has stopped')
await sleep(20_000)
show('after three lease durations')
publish('DELETED')
lease = undefined
await sleep(5000)
show('the lease was deleted')
process.exit()
EOF
node main.mjs | tee out
cat >want <<'EOF'
both run: held by first, second leads: false
first has stopped: held by none, second leads: false
after three lease durations: held by none, second leads: false
the lease was deleted: held by second, second leads: true
EOF
diff want out
