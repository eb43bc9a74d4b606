#!/bin/sh
# ruby-kubeclient 4.9.3 of Debian 12 (Kubeclient::Resource, what each request returns and takes), with Ruby 3.1.
#
# Seen: a field that has the name of one of Ruby's own methods is hidden by it: `match.method` of an HTTPRoute is an ArgumentError, `spec.hash` is a number that
# changes with each run, `spec.class` is the class Kubeclient::Resource, and `spec.table` of a database's custom resource all fields of spec. Other fields of such
# names (test, format, select) are read. to_json is a text in quotes with Ruby's view of the object. `spec[:method]` and to_h have the right values.
# Expected: the fields of the object, as for the others, and JSON from to_json.
# Who is hurt: operators in Ruby: a `spec.hash` that was kept from the last run is another one after each restart, so that all is done again; what to_json has
# written to a file or a queue cannot be read; and a test with other fields passes.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ruby3.1 libruby3.1 ruby-kubeclient=4.9.3-2 ruby-jsonpath ruby-multi-json ruby-rest-client ruby-http-accept ruby-http-cookie \
  ruby-domain-name ruby-unf ruby-unf-ext ruby-mime-types ruby-mime-types-data ruby-netrc ruby-recursive-open-struct ruby-http ruby-addressable \
  ruby-public-suffix ruby-http-form-data ruby-http-parser ruby-ffi ruby-ffi-compiler libhttp-parser2.9 libyaml-0-2 ruby-psych >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.rb <<'END'
require 'json'
require 'kubeclient'

spec = { method: 'GET', hash: 'a1b2', class: 'fast', table: 'orders', test: 'yes', format: 'csv', select: 'all' }
object = Kubeclient::Resource.new(kind: 'Example', spec: spec)
spec.each do |name, value|
  read = begin
    object.spec.public_send(name)
  rescue StandardError => e
    "#{e.class}: #{e.message}"
  end
  shown = read.is_a?(Integer) ? read.class : read.inspect
  puts "spec.#{name}: #{shown}, spec[:#{name}]: #{object.spec[name].inspect}, is #{value.inspect}"
end
puts Kubeclient::Resource.new(kind: 'Example').to_json
puts Kubeclient::Resource.new(kind: 'Example').to_h.to_json
END
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu \
RUBYLIB=usr/lib/ruby/vendor_ruby:usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0:usr/lib/ruby/3.1.0:usr/lib/x86_64-linux-gnu/ruby/3.1.0:$(echo usr/share/rubygems-integration/all/gems/*/lib usr/lib/x86_64-linux-gnu/rubygems-integration/3.1.0/gems/*/lib usr/lib/x86_64-linux-gnu/rubygems-integration/3.1.0/extensions/*/*/* | tr ' ' :) \
  usr/bin/ruby3.1 --disable-gems main.rb | tee out
cat >want <<'END'
spec.method: "ArgumentError: wrong number of arguments (given 0, expected 1)", spec[:method]: "GET", is "GET"
spec.hash: Integer, spec[:hash]: "a1b2", is "a1b2"
spec.class: Kubeclient::Resource, spec[:class]: "fast", is "fast"
spec.table: {:method=>"GET", :hash=>"a1b2", :class=>"fast", :table=>"orders", :test=>"yes", :format=>"csv", :select=>"all"}, spec[:table]: "orders", is "orders"
spec.test: "yes", spec[:test]: "yes", is "yes"
spec.format: "csv", spec[:format]: "csv", is "csv"
spec.select: "all", spec[:select]: "all", is "all"
"#<Kubeclient::Resource kind=\"Example\">"
{"kind":"Example"}
END
diff want out
