#!/bin/sh
# kubernetes-fluent-client 3.11.0 (npm; the client below Pepr; 3.11.11 reads the stream in the same way).
#
# Seen: while an asynchronous callback of Watch works on one event, the events of the next piece of the response are
# delivered at the same time, before the rest of the first piece. A Pod that is changed and deleted is reported as DELETED
# and then as MODIFIED, and the watcher's own cache holds it until the next relist, ten minutes later by default, which
# reports a second DELETED.
# Expected: the events of one object in the order of the stream, as other clients keep it: a callback may return a promise,
# and the watcher awaits it for each line, but not between the pieces.
# Who is hurt: operators whose callback calls the API, so each real one: work for an object starts after the clean-up
# of the object, and what it creates then stays. It needs two events within the time of one callback.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . kubernetes-fluent-client@3.11.0 >/dev/null
cat >main.mjs <<'EOF'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

let deletePod
const event = (type, version) => JSON.stringify({
  type, object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'n', uid: 'a', resourceVersion: version } },
}) + '\n'
const server = http.createServer((req, res) => {
  res.writeHead(200, { 'content-type': 'application/json' })
  if (!req.url.includes('watch=true')) return res.end(JSON.stringify({ kind: 'PodList', metadata: { resourceVersion: '1' }, items: [] }))
  res.write(event('ADDED', '2') + event('MODIFIED', '3'))
  deletePod = () => res.write(event('DELETED', '4'))
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
const { K8s, kind } = await import('kubernetes-fluent-client')
const callback = async (pod, phase) => {
  const version = pod.metadata.resourceVersion
  console.log(`begin ${phase} at ${version}`)
  if (phase === 'ADDED') {
    deletePod()
    await sleep(1000)
  }
  console.log(`end ${phase} at ${version}`)
}
await K8s(kind.Pod).InNamespace('n').Watch(callback, { relistIntervalSec: 3 }).start()
await sleep(5500)
process.exit()
EOF
node main.mjs | tee out
cat >want <<'EOF'
begin ADDED at 2
begin DELETED at 4
end DELETED at 4
end ADDED at 2
begin MODIFIED at 3
end MODIFIED at 3
begin DELETED at 3
end DELETED at 3
EOF
diff want out
