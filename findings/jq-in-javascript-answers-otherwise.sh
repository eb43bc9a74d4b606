#!/bin/sh
# @michaelhomer/jqjs 1.6.0 and @jq-tools/jq 0.0.11 (npm), jq for browsers and Node, beside jq 1.6 of Debian 12.
#
# Seen: filters that all three take have other results, without an error. In jqjs `.x // "none"` is two results, null and "none", `keys` is a result for each
# key, a slice without an end ([1:]) is empty, `@sh` writes the word 'string', `setpath` writes {}, and `//=` leaves null. In jq-tools a name that a
# pattern captures is null in `sub`, and `map_values(empty)` writes the path into the object.
# Expected: what jq prints, as both promise for the filters that they have. (What they do not have is an error.)
# Who is hurt: dashboards and low-code tools that run users' jq filters on objects of the API: a filter that was tried in a shell counts each object with
# a default twice, drops the tail of a list, and puts the word 'string' into a command.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download jq libjq1 libonig5 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
npm install --silent --no-save --prefix . @michaelhomer/jqjs@1.6.0 @jq-tools/jq@0.0.11 tslib@2.8.1 >/dev/null
cat >pod.json <<'END'
{"metadata":{"name":"web","labels":{"app":"web","tier":"front"}},"spec":{"containers":[{"name":"a","image":"r.io/a:v1"},{"name":"b","image":"r.io/b:v2"}]}}
END
cat >filters <<'END'
.spec.nodeName // "none"
.metadata.labels | keys
.spec.containers[1:] | map(.name)
.metadata.name | @sh
{} | setpath(["a", "b"]; 1)
{"a": null} | .a //= 3
.spec.containers[0].image | sub("(?<tag>v1)"; "\(.tag)-debug")
.metadata.labels | map_values(empty)
END
cat >main.mjs <<'END'
import { readFileSync } from 'node:fs'
import jqjs from '@michaelhomer/jqjs'
import tools from '@jq-tools/jq'

const [, , library, filter] = process.argv
const pod = JSON.parse(readFileSync('pod.json', 'utf8'))
const run = library === 'jqjs' ? () => jqjs.compile(filter)(pod) : () => tools.jq([filter])([pod])
try {
  console.log([...run()].map((result) => JSON.stringify(result)).join(' '))
} catch (e) {
  console.log('error:', String(e.message ?? e).split('\n')[0])
}
END
while read -r filter; do
  echo "$filter"
  echo "  jq: $(LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/jq -c "$filter" pod.json | paste -sd ' ')"
  for library in jqjs jq-tools; do echo "  $library: $(node main.mjs $library "$filter" </dev/null)"; done
done <filters | tee out
cat >want <<'END'
.spec.nodeName // "none"
  jq: "none"
  jqjs: null "none"
  jq-tools: "none"
.metadata.labels | keys
  jq: ["app","tier"]
  jqjs: "app" "tier"
  jq-tools: ["app","tier"]
.spec.containers[1:] | map(.name)
  jq: ["b"]
  jqjs: []
  jq-tools: ["b"]
.metadata.name | @sh
  jq: "'web'"
  jqjs: "'string'"
  jq-tools: error: Feature '@sh' is not implemented
{} | setpath(["a", "b"]; 1)
  jq: {"a":{"b":1}}
  jqjs: {"a":{}}
  jq-tools: error: Feature 'setpath/2' is not implemented
{"a": null} | .a //= 3
  jq: {"a":3}
  jqjs: {"a":null}
  jq-tools: {"a":3}
.spec.containers[0].image | sub("(?<tag>v1)"; "\(.tag)-debug")
  jq: "r.io/a:v1-debug"
  jqjs: "r.io/a:v1-debug"
  jq-tools: "r.io/a:null-debug"
.metadata.labels | map_values(empty)
  jq: {}
  jqjs: {}
  jq-tools: {"app":"web","tier":"front","metadata":{"labels":{}}}
END
diff want out
