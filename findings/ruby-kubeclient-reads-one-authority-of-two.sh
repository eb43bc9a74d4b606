#!/bin/sh
# ruby-kubeclient 4.9.3 of Debian 12 (Kubeclient::Config).
#
# Seen: of a kubeconfig's certificate-authority-data with two certificates only the first is trusted. The same two in the file of
# certificate-authority are both trusted.
# Expected: all certificates of the bundle, which is what a bundle is for; the two fields differ in nothing else.
# Who is hurt: Ruby programs while a cluster's authority is changed: the old and the new one are in the data, old one first, all
# other clients keep working, and these fail with "certificate verify failed" when the server gets its new certificate.
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ruby3.1 libruby3.1 ruby-kubeclient=4.9.3-2 ruby-jsonpath ruby-multi-json ruby-rest-client ruby-http-accept ruby-http-cookie \
  ruby-domain-name ruby-unf ruby-unf-ext ruby-mime-types ruby-mime-types-data ruby-netrc ruby-recursive-open-struct ruby-http ruby-addressable \
  ruby-public-suffix ruby-http-form-data ruby-http-parser ruby-ffi ruby-ffi-compiler libhttp-parser2.9 libyaml-0-2 ruby-psych >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
for name in old new; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $name.key -out $name.pem -days 2 -subj /CN=$name 2>/dev/null
done
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out request.pem -subj /CN=kubernetes 2>/dev/null
echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' >names
openssl x509 -req -in request.pem -CA new.pem -CAkey new.key -CAcreateserial -extfile names -days 2 -out cert.pem 2>/dev/null
cat old.pem new.pem >old-new.pem
cat new.pem old.pem >new-old.pem
cat >server.mjs <<'EOF'
import fs from 'node:fs'
import https from 'node:https'

const server = https.createServer({ key: fs.readFileSync('key.pem'), cert: fs.readFileSync('cert.pem') }, (request, response) => {
  response.setHeader('Content-Type', 'application/json')
  response.end(request.url.endsWith('/v1')
    ? '{"kind":"APIResourceList","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}'
    : '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}')
})
server.listen(0, '127.0.0.1', () => fs.writeFileSync('port', String(server.address().port)))
EOF
node server.mjs & server=$!
for _ in $(seq 600); do test -s port && break; sleep 0.1; done
cat >main.rb <<'EOF'
require 'kubeclient'

%w[old-new new-old].each do |bundle|
  { 'data' => { 'certificate-authority-data' => Base64.strict_encode64(File.read("#{bundle}.pem")) },
    'file' => { 'certificate-authority' => File.expand_path("#{bundle}.pem") } }.each do |kind, authority|
    context = Kubeclient::Config.new({
      'apiVersion' => 'v1', 'current-context' => 'x',
      'clusters' => [{ 'name' => 'c', 'cluster' => { 'server' => "https://127.0.0.1:#{File.read('port')}" }.merge(authority) }],
      'users' => [{ 'name' => 'u', 'user' => {} }], 'contexts' => [{ 'name' => 'x', 'context' => { 'cluster' => 'c', 'user' => 'u' } }]
    }, '.').context
    result = begin
      Kubeclient::Client.new("#{context.api_endpoint}/api", 'v1', ssl_options: context.ssl_options).get_pods
      'ok'
    rescue StandardError => e
      e.message[/certificate verify failed/] || e.message
    end
    puts "#{bundle}, #{kind}: #{result}"
  end
end
EOF
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu \
RUBYLIB=usr/lib/ruby/vendor_ruby:usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0:usr/lib/ruby/3.1.0:usr/lib/x86_64-linux-gnu/ruby/3.1.0:$(echo usr/share/rubygems-integration/all/gems/*/lib usr/lib/x86_64-linux-gnu/rubygems-integration/3.1.0/gems/*/lib usr/lib/x86_64-linux-gnu/rubygems-integration/3.1.0/extensions/*/*/* | tr ' ' :) \
  usr/bin/ruby3.1 --disable-gems main.rb | tee out
cat >want <<'EOF'
old-new, data: certificate verify failed
old-new, file: ok
new-old, data: ok
new-old, file: ok
EOF
diff want out
