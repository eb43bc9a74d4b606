#!/bin/sh
# bytes 3.1.2 (Express' and raw-body's limits), bytes-iec 3.1.1, filesize-parser 1.5.2 and xbytes 1.9.1 (npm), python3-humanfriendly 10.0 of Debian 12, and
# k8s.io/apimachinery's quantities, whose bytes are in the first column.
#
# Seen: bytes takes the digits at the beginning if it does not know the unit: 512Mi, 512M and 512MiB are 512 bytes, 1G is one byte and 64k are 64, without an error.
# humanfriendly reads 512Mi as 512,000,000 and 100m as a hundred million. 1kb is 1024, 1000 or 125. The other two return null or undefined for 512Mi.
# Expected: 536870912, or an error.
# Who is hurt: servers that get their limits from the place where the Pod's are: with a body limit of 10Mi each request with more than ten bytes is a 413, a
# cache of 1G holds nothing, and undefined is no limit at all.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-humanfriendly=10.0-3 >/dev/null 2>&1
dpkg-deb -x python3-humanfriendly_*.deb .
npm install --silent --no-save --prefix . bytes@3.1.2 bytes-iec@3.1.1 filesize-parser@1.5.2 xbytes@1.9.1 >/dev/null
cat >sizes <<'EOF'
512Mi 536870912
512M 512000000
512MiB -
1G 1000000000
1Gi 1073741824
64k 64000
1kb -
100m 0.1
0.5 0.5
EOF
cat >main.cjs <<'EOF'
const fs = require('node:fs')
const bytes = require('bytes')
const iec = require('bytes-iec')
const filesize = require('filesize-parser')
const { parseSize } = require('xbytes')

for (const line of fs.readFileSync('sizes', 'utf8').trim().split('\n')) {
  const [size] = line.split(' ')
  console.log(`${bytes.parse(size)} ${iec.parse(size)} ${filesize(size)} ${parseSize(size)}`)
}
EOF
cat >main.py <<'EOF'
import humanfriendly

for line in open('sizes'):
    print(humanfriendly.parse_size(line.split()[0]))
EOF
node main.cjs >node.out
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py >python.out
{
  echo 'size Kubernetes bytes bytes-iec filesize-parser xbytes humanfriendly'
  paste -d ' ' sizes node.out python.out
} | tee out
cat >want <<'EOF'
size Kubernetes bytes bytes-iec filesize-parser xbytes humanfriendly
512Mi 536870912 512 null 536870912 undefined 512000000
512M 512000000 512 null 536870912 undefined 512000000
512MiB - 512 536870912 536870912 536870912 536870912
1G 1000000000 1 null 1073741824 undefined 1000000000
1Gi 1073741824 1 null 1073741824 undefined 1000000000
64k 64000 64 null 65536 undefined 64000
1kb - 1024 1000 1024 125 1000
100m 0.1 100 null 104857600 undefined 100000000
0.5 0.5 0 0 1 undefined 0
EOF
diff want out
