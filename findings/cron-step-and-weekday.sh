#!/bin/sh
# github.com/robfig/cron/v3 v3.0.1 (the schedules of Kubernetes' CronJob).
#
# Seen: in "0 0 */2 * 1" the day of the month counts as restricted, so the two day fields
# are joined by OR: every odd date, and every Monday too. "0 0 */1 * 1", which lists
# the same days of the month as "*", is Mondays only.
# Expected: cron(8) of Debian, of the BSDs and cronie look at the first character: a field
# that begins with "*" is a star, the fields are joined by AND, and the line means "Mondays
# with an odd date" (the usual idiom for every other week).
# Who is hurt: crontabs moved to CronJobs: the job runs 18 times in January 2024 instead of
# three times (on the 1st, 15th and 29th), without an error.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

func main() {
	for _, line := range []string{"0 0 */2 * 1", "0 0 */1 * 1"} {
		schedule, err := cron.ParseStandard(line)
		if err != nil {
			panic(err)
		}
		at, days := time.Date(2023, 12, 31, 12, 0, 0, 0, time.UTC), []int{}
		for at = schedule.Next(at); at.Month() == time.January; at = schedule.Next(at) {
			days = append(days, at.Day())
		}
		fmt.Printf("%s: %d runs in January 2024: %v\n", line, len(days), days)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/robfig/cron/v3@v3.0.1 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
0 0 */2 * 1: 18 runs in January 2024: [1 3 5 7 8 9 11 13 15 17 19 21 22 23 25 27 29 31]
0 0 */1 * 1: 5 runs in January 2024: [1 8 15 22 29]
EOF
diff want out
