// node node.mjs URL TOKEN CA: see h2clients_test.go.
import http2 from 'node:http2'
import fs from 'node:fs'
import readline from 'node:readline'

const [url, token, ca] = process.argv.slice(2)
const session = http2.connect(url, { ca: fs.readFileSync(ca) })
session.on('error', fail)
let goaway = false
session.on('goaway', () => { goaway = true })
const path = '/api/v1/namespaces/default/configmaps'

function fail(error) {
  console.log('failed', error)
  process.exit(1)
}

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = { ':method': method, ':path': path, authorization: 'Bearer ' + token }
    if (body) headers['content-type'] = 'application/json'
    const stream = session.request(headers, { endStream: !body })
    let status, text = ''
    stream.setEncoding('utf8')
    stream.on('response', h => { status = h[':status'] })
    stream.on('data', d => { text += d })
    stream.on('end', () => resolve([status, text]))
    stream.on('error', reject)
    if (body) stream.end(body)
  })
}

try {
  const [created] = await ask('POST', path, JSON.stringify({ metadata: { name: 'large' }, data: { a: 'x'.repeat(1000000) } }))
  console.log('created', created)
  const [listed, list] = await ask('GET', path)
  console.log('listed', listed, JSON.parse(list).items.some(i => i.metadata.name === 'large' && i.data.a.length === 1000000))
  const watch = session.request({ ':path': path + '?watch=true&fieldSelector=metadata.name%3Dsmall', authorization: 'Bearer ' + token })
  watch.on('error', fail)
  const closed = new Promise(resolve => session.on('close', resolve))
  for await (const line of readline.createInterface({ input: watch })) {
    const event = JSON.parse(line)
    console.log('event', event.type, event.object.data.a)
  }
  await closed
  console.log('drained', goaway)
} catch (error) {
  fail(error)
}
