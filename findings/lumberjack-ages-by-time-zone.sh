#!/bin/sh
# gopkg.in/natefinch/lumberjack.v2 v2.2.1, with which many Go programs rotate their logs (kube-apiserver with UTC only).
#
# Seen: with LocalTime the name of a backup has the local time, and MaxAge reads it as UTC: with MaxAge 1, in Honolulu
# a backup of 15 hours is deleted as older than a day, and in Tokyo one of 30 hours is kept.
# Expected: a day is "24 hours", as the comment of MaxAge says.
# Who is hurt: audit and access logs with a time for which they must be kept, or after which they must be gone: west of
# Greenwich they are gone some hours early, up to ten, and in Asia they stay that much too long; with MaxAge 1, for
# busy servers, that is up to half of it. Tests pass, for containers run in UTC.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

func main() {
	dir, err := os.MkdirTemp(".", "logs")
	if err != nil {
		panic(err)
	}
	backup := func(hours int) string {
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		name := filepath.Join(dir, "app-"+at.Format("2006-01-02T15-04-05.000")+".log")
		if err := os.WriteFile(name, []byte("line\n"), 0o600); err != nil {
			panic(err)
		}
		return name
	}
	kept := func(name string) bool {
		_, err := os.Stat(name)
		return err == nil
	}
	half, more, last := backup(15), backup(30), backup(1000)
	logger := &lumberjack.Logger{Filename: filepath.Join(dir, "app.log"), MaxAge: 1, LocalTime: true}
	if _, err := logger.Write([]byte("line\n")); err != nil {
		panic(err)
	}
	if err := logger.Rotate(); err != nil {
		panic(err)
	}
	for kept(last) { // which is the last that the goroutine of the logger deletes
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("%s: backup of 15 hours kept: %v, of 30 hours kept: %v\n", os.Getenv("TZ"), kept(half), kept(more))
}
EOF
go mod init finding 2>/dev/null
go get gopkg.in/natefinch/lumberjack.v2@v2.2.1 2>/dev/null
go build -mod=mod -o finding .
for zone in UTC Pacific/Honolulu Asia/Tokyo; do TZ=$zone ./finding; done | tee out
cat >want <<'EOF'
UTC: backup of 15 hours kept: true, of 30 hours kept: false
Pacific/Honolulu: backup of 15 hours kept: false, of 30 hours kept: false
Asia/Tokyo: backup of 15 hours kept: true, of 30 hours kept: true
EOF
diff want out
