#!/bin/sh
# lua-cjson 2.1.0 of Debian 12 (with Lua 5.3; OpenResty and Kong have the same library), beside lua-dkjson 2.6 and guile-json 4.7.3.
#
# Seen: what is decoded and encoded again, untouched, is another object: numbers keep fourteen digits, so 9007199254740993 becomes
# 9007199254741000 and 100000000000000 is written 1e+14; an empty list becomes {}. The two others keep both.
# Expected: an object that is written back as it was read, apart from what JSON calls the same.
# Who is hurt: gateways and scripts that patch Kubernetes' objects from Lua: `args: {}` and 1e+14 in an int64 are refused ("cannot
# unmarshal"), but a number of sixteen digits in a custom resource or an annotation's JSON is changed without an error.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download lua5.3 lua-cjson=2.1.0+dfsg-2.2 lua-dkjson=2.6-2 guile-json=4.7.3-2 guile-3.0 guile-3.0-libs libgc1 libunistring2 \
  libffi8 libltdl7 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
printf '%s' '{"args":[],"emptyDir":{},"limit":9007199254740993,"seconds":100000000000000}' >object.json
{
  for library in cjson dkjson; do
    printf "%s:" $library
    LIBRARY=$library LUA_PATH='usr/share/lua/5.3/?.lua' LUA_CPATH='usr/lib/x86_64-linux-gnu/lua/5.3/?.so' usr/bin/lua5.3 -e '
      local json = require(os.getenv("LIBRARY"))
      local object = json.decode(io.open("object.json"):read("a"))
      for _, key in ipairs({"args", "emptyDir", "limit", "seconds"}) do io.write(" ", key, "=", json.encode(object[key])) end
      print()'
  done
  printf 'guile-json: '
  GUILE_AUTO_COMPILE=0 GUILE_LOAD_PATH="$dir/usr/share/guile/site/3.0:$dir/usr/share/guile/3.0" \
    GUILE_LOAD_COMPILED_PATH="$dir/usr/lib/x86_64-linux-gnu/guile/3.0/ccache" usr/bin/guile-3.0 -c \
    '(use-modules (json)) (scm->json (json->scm (open-input-file "object.json"))) (newline)'
} | tee out
cat >want <<'EOF'
cjson: args={} emptyDir={} limit=9.007199254741e+15 seconds=1e+14
dkjson: args=[] emptyDir={} limit=9007199254740993 seconds=100000000000000
guile-json: {"seconds":100000000000000,"limit":9007199254740993,"emptyDir":{},"args":[]}
EOF
diff want out
