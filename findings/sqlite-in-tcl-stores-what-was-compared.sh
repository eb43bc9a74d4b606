#!/bin/sh
# libsqlite3-tcl 3.40.1 (SQLite's own binding for Tcl) with Tcl 8.6.13, both of Debian 12.
#
# Seen: what `db eval {INSERT ... $v}` stores depends on what was done with $v before. A value that was only read is stored as it is; after a
# comparison such as `$v == "latest"` or `$v > 1` the text 1.10 is stored as 1.1, 0x10 as 16, 007 as 7, 1e3 as 1000.0: Tcl keeps the number
# beside the text, and the binding takes the number. A TEXT column does not help, it stores the digits of the number.
# Expected: the text that the variable has, which a comparison does not change for any other command of Tcl.
# Who is hurt: scripts that keep tags, labels and digests in SQLite: a version 1.10 becomes 1.1, and a commit such as 12e5 becomes 1200000.0, as
# soon as somebody adds an `if` before the INSERT.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download libsqlite3-tcl=3.40.1-2+deb12u2 libsqlite3-0=3.40.1-2+deb12u2 tcl8.6=8.6.13+dfsg-2 libtcl8.6=8.6.13+dfsg-2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.tcl <<'EOF'
lappend auto_path [pwd]/usr/lib/tcltk {*}[glob [pwd]/usr/lib/tcltk/*]
package require sqlite3
sqlite3 db :memory:
db eval {CREATE TABLE tags (name TEXT)}
foreach line [split "1.10 0x10 007 1e3 12e5 latest"] {
  set stored {}
  foreach use {nothing equal greater} {
    set tag [string range "$line " 0 end-1]
    if {$use eq "equal" && $tag == "latest"} {}
    if {$use eq "greater" && $tag > 1} {}
    db eval {DELETE FROM tags; INSERT INTO tags VALUES ($tag)}
    lappend stored "after $use: [db onecolumn {SELECT name FROM tags}]"
  }
  puts "$line [join $stored {, }]"
}
EOF
TCL_LIBRARY=usr/share/tcltk/tcl8.6 LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/tclsh8.6 main.tcl | tee out
cat >want <<'EOF'
1.10 after nothing: 1.10, after equal: 1.1, after greater: 1.1
0x10 after nothing: 0x10, after equal: 16, after greater: 16
007 after nothing: 007, after equal: 7, after greater: 7
1e3 after nothing: 1e3, after equal: 1000.0, after greater: 1000.0
12e5 after nothing: 12e5, after equal: 1200000.0, after greater: 1200000.0
latest after nothing: latest, after equal: latest, after greater: latest
EOF
diff want out
