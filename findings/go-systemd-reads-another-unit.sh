#!/bin/sh
# github.com/coreos/go-systemd/v22 v22.7.0 (package unit), compared with systemd-escape and systemd.syntax(7) of systemd 252 in Debian 12.
#
# Seen: a comment line inside of a continued value ends the value. What follows is an option of its own: --node-labels=zone=a becomes the option
# "--node-labels" of the section, without an error. The backslashes stay in the value. In names, each byte above 0x7f is escaped and never
# unescaped, and a byte below 0x10 is escaped with one digit, which swallows the next character if this is a hexadecimal digit.
# Expected: what the manual has: "the comment block is ignored, so the continued line is concatenated with whatever follows the comment block";
# and names as systemd-escape writes and reads them, which the comments of the package promise.
# Who is hurt: tools that read a kubelet's or a container engine's unit: the flags after a comment are not seen, and are written back as options that
# systemd ignores, so that the kubelet starts without them. A mount unit of a path with ü is not found again by its path.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download systemd=252.39-1~deb12u2 libsystemd-shared=252.39-1~deb12u2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
)

const kubelet = `[Service]
ExecStart=/usr/bin/kubelet \
  --config=/etc/kubelet.yaml \
  # --pod-manifest-path=/etc/manifests
  --node-labels=zone=a
Restart=always
`

func main() {
	options, err := unit.Deserialize(strings.NewReader(kubelet))
	if err != nil {
		panic(err)
	}
	for _, option := range options {
		fmt.Printf("%s: %q\n", option.Name, option.Value)
	}
	for _, path := range []string{"/srv/data", "/srv/Grün", "/srv/a\tb"} {
		name := unit.UnitNamePathEscape(path)
		fmt.Printf("go-systemd %s, back %q\n", name, unit.UnitNamePathUnescape(name))
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/coreos/go-systemd/v22@v22.7.0 2>/dev/null
{
  go run -mod=mod .
  for path in /srv/data /srv/Grün "$(printf '/srv/a\tb')"; do
    name=$(LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu/systemd bin/systemd-escape --path "$path")
    printf 'systemd %s, back %s\n' "$name" "$(LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu/systemd bin/systemd-escape --path --unescape "$name" | sed 's/\t/<tab>/')"
  done
} | tee out
cat >want <<'EOF'
ExecStart: "/usr/bin/kubelet \\\n  --config=/etc/kubelet.yaml \\\n  # --pod-manifest-path=/etc/manifests"
--node-labels: "zone=a"
Restart: "always"
go-systemd srv-data, back "/srv/data"
go-systemd srv-Gr\xc3\xbcn, back "/srv/Gr\\xc3\\xbcn"
go-systemd srv-a\x9b, back "/srv/a\\x9b"
systemd srv-data, back /srv/data
systemd srv-Gr\xc3\xbcn, back /srv/Grün
systemd srv-a\x09b, back /srv/a<tab>b
EOF
diff want out
