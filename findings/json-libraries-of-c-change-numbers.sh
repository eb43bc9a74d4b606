#!/bin/sh
# libcjson 1.7.15 (which the official Kubernetes client in C stands on), libjansson 2.14 and libjson-c 0.16 of Debian 12.
#
# Seen: an object that is read and written again, untouched, is another one. cJSON has doubles only and writes fifteen digits where it
# thinks that they will do: 9007199254740993 becomes 9.00719925474099e+15, and a time in nanoseconds 1.7e+18. Jansson writes 1.10 as
# 1.1000000000000001, and refuses a whole object for one integer above int64 or a "\u0000", where cJSON cuts the text. json-c keeps all.
# Expected: the same JSON, or an error.
# Who is hurt: programs in C that replace what they read: an int64 of a built-in kind is refused ("cannot unmarshal number 1.7e+18"), and
# in a custom resource an identity loses its last digits without an error; one object of others makes a whole list unreadable.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download libcjson1=1.7.15-1+deb12u4 libjansson4=2.14-2 libjson-c5=0.16-2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
import ctypes
import glob


def load(name):
    return ctypes.CDLL(sorted(glob.glob(f'usr/lib/x86_64-linux-gnu/{name}.so.*'))[0])


def function(library, name, result, *arguments):
    f = getattr(library, name)
    f.restype, f.argtypes = result, arguments
    return f


pointer, text = ctypes.c_void_p, ctypes.c_char_p
cjson, jansson, jsonc = load('libcjson'), load('libjansson'), load('libjson-c')
cjson_read = function(cjson, 'cJSON_Parse', pointer, text)
cjson_write = function(cjson, 'cJSON_PrintUnformatted', text, pointer)
jansson_read = function(jansson, 'json_loads', pointer, text, ctypes.c_size_t, pointer)
jansson_write = function(jansson, 'json_dumps', text, pointer, ctypes.c_size_t)
jsonc_read = function(jsonc, 'json_tokener_parse', pointer, text)
jsonc_write = function(jsonc, 'json_object_to_json_string_ext', text, pointer, ctypes.c_int)
COMPACT = 0x20  # of Jansson
libraries = {
    'cJSON': (cjson_read, cjson_write),
    'Jansson': (lambda s: jansson_read(s, 0, None), lambda v: jansson_write(v, COMPACT)),
    'json-c': (jsonc_read, lambda v: jsonc_write(v, 0)),
}
for object in ('{"a":9007199254740993}', '{"a":18446744073709551615}', '{"a":1700000000000000000}', '{"a":1.10}', r'{"a":"b\u0000c"}'):
    results = []
    for name, (read, write) in libraries.items():
        value = read(object.encode())
        results.append(f'{name} {write(value).decode() if value else "refused"}')
    print(f'{object}: {", ".join(results)}')
EOF
/usr/bin/python3 main.py | tee out
cat >want <<'EOF'
{"a":9007199254740993}: cJSON {"a":9.00719925474099e+15}, Jansson {"a":9007199254740993}, json-c {"a":9007199254740993}
{"a":18446744073709551615}: cJSON {"a":1.8446744073709552e+19}, Jansson refused, json-c {"a":18446744073709551615}
{"a":1700000000000000000}: cJSON {"a":1.7e+18}, Jansson {"a":1700000000000000000}, json-c {"a":1700000000000000000}
{"a":1.10}: cJSON {"a":1.1}, Jansson {"a":1.1000000000000001}, json-c {"a":1.10}
{"a":"b\u0000c"}: cJSON {"a":"b"}, Jansson refused, json-c {"a":"b\u0000c"}
EOF
diff want out
