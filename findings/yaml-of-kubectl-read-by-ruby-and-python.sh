#!/bin/sh
# sigs.k8s.io/yaml v1.6.0, which kubectl, kustomize, Helm and controller-gen print with, read by Psych 5.0.2 (Ruby), PyYAML 6.0 and
# ruamel.yaml 0.17.21 of Debian 12.
#
# Seen: texts that Go prints without quotes are something else to the readers. Ruby takes `1,5` for 15 and `1,000` for 1000, and
# `:8080` for a Symbol, which safe_load refuses. PyYAML and ruamel.yaml fail at `=` and `<<`.
# Expected: the texts; by YAML 1.2 all of them are plain texts, and the printer quotes what it knows of YAML 1.1 (`n`, `1:30`).
# Who is hurt: scripts that read `kubectl get -o yaml` or rendered manifests: an address ":8080" among the arguments and an
# enum with "=" (CRDs of the Prometheus operator) end them with an exception, and a price or a weight of "1,5" becomes 15.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-yaml=6.0-3+b2 libyaml-0-2 python3-ruamel.yaml=0.17.21-1 python3-ruamel.yaml.clib ruby-psych=5.0.2-1 ruby3.1 \
  libruby3.1 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
cat >main.go <<'EOF'
package main

import (
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	data, err := yaml.Marshal([]string{":8080", "1,000", "1,5", "=", "<<", "n", "1:30", "0o17"})
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(data); err != nil {
		panic(err)
	}
}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run -mod=mod . >printed.yaml
cat >main.rb <<'EOF'
require 'psych'
File.readlines('printed.yaml').each do |line|
  got = begin
    Psych.safe_load(line).first.inspect
  rescue Psych::Exception => e
    e.message
  end
  puts "#{line.chomp} Psych: #{got}"
end
EOF
cat >main.py <<'EOF'
import ruamel.yaml
import yaml

for library, load in ('PyYAML', yaml.safe_load), ('ruamel.yaml', ruamel.yaml.YAML(typ='safe').load):
    for line in open('printed.yaml'):
        try:
            got = repr(load(line)[0])
        except Exception as e:
            got = str(e).split('\n')[0]
        print(line.strip(), library + ':', got)
EOF
{
  RUBYLIB=usr/lib/ruby/vendor_ruby:usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0:usr/lib/ruby/3.1.0:usr/lib/x86_64-linux-gnu/ruby/3.1.0 \
    usr/bin/ruby3.1 --disable-gems main.rb
  PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 main.py
} | tee out
cat >want <<'EOF'
- :8080 Psych: Tried to load unspecified class: Symbol
- 1,000 Psych: 1000
- 1,5 Psych: 15
- = Psych: "="
- << Psych: "<<"
- "n" Psych: "n"
- "1:30" Psych: "1:30"
- "0o17" Psych: "0o17"
- :8080 PyYAML: ':8080'
- 1,000 PyYAML: '1,000'
- 1,5 PyYAML: '1,5'
- = PyYAML: could not determine a constructor for the tag 'tag:yaml.org,2002:value'
- << PyYAML: could not determine a constructor for the tag 'tag:yaml.org,2002:merge'
- "n" PyYAML: 'n'
- "1:30" PyYAML: '1:30'
- "0o17" PyYAML: '0o17'
- :8080 ruamel.yaml: ':8080'
- 1,000 ruamel.yaml: '1,000'
- 1,5 ruamel.yaml: '1,5'
- = ruamel.yaml: could not determine a constructor for the tag 'tag:yaml.org,2002:value'
- << ruamel.yaml: could not determine a constructor for the tag 'tag:yaml.org,2002:merge'
- "n" ruamel.yaml: 'n'
- "1:30" ruamel.yaml: '1:30'
- "0o17" ruamel.yaml: '0o17'
EOF
diff want out
