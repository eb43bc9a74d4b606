#!/bin/sh
# sigs.k8s.io/yaml v1.6.0 (kubectl, kustomize, Helm) reading what these write: yaml 2.9.1 and js-yaml 5.5.0 (npm), and of Debian
# 12 PyYAML 6.0, ruamel.yaml 0.17.21, Psych 5.0.2 (Ruby), YAML::XS 0.86, YAML::PP 0.035, YAML 1.30 and YAML::Tiny 1.73 (Perl) and
# lyaml 6.2.8 (Lua).
#
# Seen: nine of the ten writers leave texts without quotes that kubectl reads as booleans or numbers, since it reads by YAML 1.1
# and by Go's rules for numbers at once: `y`, `0o17`, `0b11`, `1e3` without a point, `08`, `1_000`. js-yaml quotes them all.
# Expected: what one YAML library wrote as a text is a text to another.
# Who is hurt: programs that write labels, annotations and environment variables: most are refused ("cannot unmarshal number
# into string"). In Helm's values, in custom resources and in the files inside of a ConfigMap the value is changed without an
# error: the commit 12e03 is 12000, and the store 08 is 8.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-yaml=6.0-3+b2 libyaml-0-2 python3-ruamel.yaml=0.17.21-1 python3-ruamel.yaml.clib ruby-psych=5.0.2-1 ruby3.1 \
  libruby3.1 libyaml-libyaml-perl=0.86+ds-1+deb12u1 libyaml-pp-perl=0.035-1 libyaml-perl=1.30-2 libyaml-tiny-perl=1.73-1 \
  lua5.3 lua-yaml=6.2.8-2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
npm install --silent --no-save --prefix . yaml@2.9.1 js-yaml@5.5.0 >/dev/null
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
cat >texts <<'EOF'
y
no
on
1e3
12e03
0x1f
0o17
010
08
0b11
1_000
1:30
.5
+1
2024-01-01
~
null
EOF
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import * as YAML from 'yaml'
import * as jsyaml from 'js-yaml'

const texts = fs.readFileSync('texts', 'utf8').trim().split('\n')
fs.writeFileSync('yaml.out', YAML.stringify(texts))
fs.writeFileSync('js-yaml.out', (jsyaml.dump ?? jsyaml.default.dump)(texts))
EOF
node main.mjs
cat >main.py <<'EOF'
import sys

import ruamel.yaml
import yaml

texts = open('texts').read().split()
yaml.safe_dump(texts, open('PyYAML.out', 'w'))
ruamel.yaml.YAML().dump(texts, open('ruamel.out', 'w'))
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 main.py
RUBYLIB=usr/lib/ruby/vendor_ruby:usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0:usr/lib/ruby/3.1.0:usr/lib/x86_64-linux-gnu/ruby/3.1.0 \
  usr/bin/ruby3.1 --disable-gems -e 'require "psych"; File.write("Psych.out", Psych.dump(File.read("texts").split))'
for module in YAML::XS YAML::PP YAML YAML::Tiny; do
  perl -Iusr/share/perl5 -Iusr/lib/x86_64-linux-gnu/perl5/5.36 -M$module=Dump -e \
    'open my $in, "<", "texts"; chomp(my @texts = <$in>); open my $out, ">", "$ARGV[0].out"; print $out Dump(\@texts)' $module
done
LUA_PATH='usr/share/lua/5.3/?.lua;usr/share/lua/5.3/?/init.lua' LUA_CPATH='usr/lib/x86_64-linux-gnu/lua/5.3/?.so' usr/bin/lua5.3 -e '
  local texts = {}
  for line in io.lines("texts") do texts[#texts + 1] = line end
  io.open("lyaml.out", "w"):write(require("lyaml").dump({texts}))'
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	wanted, err := os.ReadFile("texts")
	if err != nil {
		panic(err)
	}
	texts := strings.Fields(string(wanted))
	for _, writer := range []string{"yaml", "js-yaml", "PyYAML", "ruamel", "Psych", "YAML::XS", "YAML::PP", "YAML", "YAML::Tiny", "lyaml"} {
		data, err := os.ReadFile(writer + ".out")
		if err != nil {
			panic(err)
		}
		var got []any
		if err := yaml.Unmarshal(data, &got); err != nil {
			panic(fmt.Sprint(writer, err))
		}
		fmt.Print(writer, ":")
		for i, text := range texts {
			if got[i] != any(text) {
				fmt.Printf(" %s=%v", text, got[i])
			}
		}
		fmt.Println()
	}
}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
yaml: y=true no=false on=true 0b11=3 1_000=1000
js-yaml:
PyYAML: y=true 1e3=1000 12e03=12000 0o17=15 08=8
ruamel: y=true no=false on=true
Psych: 1e3=1000 12e03=12000 0o17=15
YAML::XS: y=true no=false on=true 0x1f=31 0o17=15 0b11=3 1_000=1000
YAML::PP: y=true no=false on=true 0b11=3 1_000=1000
YAML: y=true no=false on=true 1e3=1000 12e03=12000 0x1f=31 0o17=15 010=8 08=8 0b11=3 1_000=1000 .5=0.5 +1=1 null=<nil>
YAML::Tiny: y=true no=false on=true 0x1f=31 0o17=15 0b11=3 1_000=1000
lyaml: y=true 0o17=15
EOF
diff want out
