#!/bin/sh
# docker-parse-image 3.0.1 (npm), compared with parse-docker-image-name 3.0.0 (npm), which has the grammar of the container engines.
#
# Seen: its full name has "library" in each registry, so that registry.k8s.io/pause:3.9 is registry.k8s.io/library/pause:3.9, which does not exist. localhost is
# taken for a user of Docker Hub. A digest is a tag ("app:sha256:..."), with a tag before it both are one tag, and a name of three parts is null.
# Expected: "library" is a rule of Docker Hub alone, and images of clusters have digests and more than two parts in their paths.
# Who is hurt: bots and dashboards that look for the newest tag of what runs in a cluster: most of Kubernetes' own images are "not found", those of
# quay.io/a/b/c are a TypeError, and an image pinned by digest is compared as a tag.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . docker-parse-image@3.0.1 parse-docker-image-name@3.0.0 >/dev/null
cat >main.cjs <<'EOF'
const parse = require('docker-parse-image')
const other = require('parse-docker-image-name')

const digest = `sha256:${'a'.repeat(64)}`
const shorten = (text) => text.replace(/a{64}/g, 'aaa')
for (const image of ['nginx', 'registry.k8s.io/pause:3.9', 'localhost/app', `app@${digest}`, `quay.io/team/app:v1@${digest}`, 'quay.io/team/app/web:v1']) {
  const parsed = parse(image)
  const { domain, path, tag, digest } = (other.default ?? other)(image)
  console.log(shorten(`${image}: ${parsed ? `registry ${parsed.registry}, ${parsed.fullname}, tag ${parsed.tag}` : parsed}`))
  console.log(shorten(`  host ${domain}, path ${path}, tag ${tag}, digest ${digest}`))
}
EOF
node main.cjs | tee out
cat >want <<'EOF'
nginx: registry null, library/nginx:latest, tag null
  host undefined, path nginx, tag undefined, digest undefined
registry.k8s.io/pause:3.9: registry registry.k8s.io, registry.k8s.io/library/pause:3.9, tag 3.9
  host registry.k8s.io, path pause, tag 3.9, digest undefined
localhost/app: registry null, localhost/app:latest, tag null
  host localhost, path app, tag undefined, digest undefined
app@sha256:aaa: registry null, library/app:sha256:aaa, tag sha256:aaa
  host undefined, path app, tag undefined, digest sha256:aaa
quay.io/team/app:v1@sha256:aaa: registry quay.io, quay.io/team/app:v1@sha256:aaa, tag v1@sha256:aaa
  host quay.io, path team/app, tag v1, digest sha256:aaa
quay.io/team/app/web:v1: null
  host quay.io, path team/app/web, tag v1, digest undefined
EOF
diff want out
