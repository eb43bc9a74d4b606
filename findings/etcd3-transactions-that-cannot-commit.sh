#!/bin/sh
# etcd3 1.1.2 (npm), the client of etcd for Node, against etcd-server 3.4.23 of Debian 12.
#
# Seen: with the default isolation a transaction (stm) that reads a key, and writes one that was changed later than the
# first, can never commit, though nobody else is there: it requires that what it writes is older than the oldest key that
# it has read. The example of its documentation, a transfer between two accounts, fails once one account was changed
# alone. And after tx.delete().all() a read in the same transaction still finds what was deleted.
# Expected: a conflict only if a key has changed since the transaction has read, as in etcd's own client in Go.
# Who is hurt: whoever keeps related keys in etcd from Node. Tests that write all keys at once pass, because these then
# have one revision; in production the call fails, after its retries, with "a conflict occurred", for the same keys
# every time, until something else writes both together. It looks like contention.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download etcd-server=3.4.23-4+b4 >/dev/null 2>&1
dpkg-deb -x etcd-server_*.deb .
npm install --silent --no-save --prefix . etcd3@1.1.2 >/dev/null
cat >main.mjs <<'EOF'
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { Etcd3 } from 'etcd3'

const free = () => new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = probe.address()
    probe.close(() => resolve(port))
  })
})
const [clients, peers] = [`http://127.0.0.1:${await free()}`, `http://127.0.0.1:${await free()}`]
const server = spawn('usr/bin/etcd', ['--data-dir', 'data', '--listen-client-urls', clients, '--advertise-client-urls', clients,
  '--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers, '--initial-cluster', `default=${peers}`], { stdio: 'ignore' })
process.on('exit', () => server.kill('SIGKILL'))
const client = new Etcd3({ hosts: clients })
for (let tries = 0; tries < 60; tries++) {
  try {
    await client.put('ready').value('yes')
    break
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}
const transfer = async (tx) => {
  const [from, to] = [await tx.get('bank/1').number(), await tx.get('bank/2').number()]
  await tx.put('bank/1').value(from - 1)
  await tx.put('bank/2').value(to + 1)
}
const attempt = async (what, options) => {
  const result = await client.stm(options).transact(transfer).then(() => 'committed', (e) => e.message)
  console.log(`${what}: ${result}; ${await client.get('bank/1').string()} and ${await client.get('bank/2').string()}`)
}
await client.if('bank/1', 'Create', '==', 0).then(client.put('bank/1').value(10), client.put('bank/2').value(0)).commit()
await attempt('both accounts of one revision')
await client.put('bank/2').value(5)
await attempt('the second changed alone')
await attempt('the same, isolation Serializable', { isolation: 1 })
await client.stm({ isolation: 1 }).transact(async (tx) => {
  await tx.delete().all()
  console.log('after delete().all():', await tx.get('bank/2').string())
})
console.log('after the commit:', await client.get('bank/2').string())
client.close()
process.exit(0)
EOF
node main.mjs | tee out
cat >want <<'EOF'
both accounts of one revision: committed; 9 and 1
the second changed alone: A conflict occurred executing the software transaction; 9 and 5
the same, isolation Serializable: committed; 8 and 6
after delete().all(): 6
after the commit: null
EOF
diff want out
