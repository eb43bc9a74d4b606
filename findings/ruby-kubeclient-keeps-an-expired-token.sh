#!/bin/sh
# ruby-kubeclient 4.9.3 of Debian 12 (Kubeclient::Client, on which fluentd's metadata filter stands).
#
# Seen: bearer_token_file is read once, when the client is made. The kubelet renews a projected token after four fifths of its hour; the
# client sends the first one for ever.
# Expected: what client-go, the Python and the Node client do: the file is read again.
# Who is hurt: collectors and exporters in Ruby: on a server that does not extend tokens for old clients, every request is a 401
# an hour after the start, until somebody restarts the Pod. (Later releases of the gem read it for each request.)
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ruby3.1 libruby3.1 ruby-kubeclient=4.9.3-2 ruby-jsonpath ruby-multi-json ruby-rest-client ruby-http-accept ruby-http-cookie \
  ruby-domain-name ruby-unf ruby-unf-ext ruby-mime-types ruby-mime-types-data ruby-netrc ruby-recursive-open-struct ruby-http ruby-addressable \
  ruby-public-suffix ruby-http-form-data ruby-http-parser ruby-ffi ruby-ffi-compiler libhttp-parser2.9 libyaml-0-2 ruby-psych >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >server.mjs <<'EOF'
import fs from 'node:fs'
import http from 'node:http'

const server = http.createServer((request, response) => {
  response.setHeader('Content-Type', 'application/json')
  if (request.url.endsWith('/v1'))
    return response.end('{"kind":"APIResourceList","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}')
  fs.appendFileSync('seen', request.headers.authorization + '\n')
  response.end('{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}')
})
server.listen(0, '127.0.0.1', () => fs.writeFileSync('port', String(server.address().port)))
EOF
node server.mjs & server=$!
for _ in $(seq 600); do test -s port && break; sleep 0.1; done
printf first >token
cat >main.rb <<'EOF'
require 'kubeclient'
client = Kubeclient::Client.new("http://127.0.0.1:#{File.read('port')}/api", 'v1', auth_options: { bearer_token_file: 'token' })
client.get_pods
File.write('token', 'second')
client.get_pods
EOF
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu \
RUBYLIB=usr/lib/ruby/vendor_ruby:usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0:usr/lib/ruby/3.1.0:usr/lib/x86_64-linux-gnu/ruby/3.1.0:$(echo usr/share/rubygems-integration/all/gems/*/lib usr/lib/x86_64-linux-gnu/rubygems-integration/3.1.0/gems/*/lib usr/lib/x86_64-linux-gnu/rubygems-integration/3.1.0/extensions/*/*/* | tr ' ' :) \
  usr/bin/ruby3.1 --disable-gems main.rb
tee out <seen
cat >want <<'EOF'
Bearer first
Bearer first
EOF
diff want out
