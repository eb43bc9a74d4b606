#!/bin/sh
# github.com/robfig/cron/v3 v3.0.1, which CronJobs use; cron-parser 5.10.6 and croner 11.0.1 (npm).
#
# Seen, on days when clocks go back: on Lord Howe Island, where that is by half an hour, the library
# finds no run at 02:15 although the day has this time once: it goes on to the next day.
# cron-parser throws "loop limit exceeded" for the same schedule. In Berlin a daily schedule
# in the repeated hour runs twice, an hour apart; with both others once.
# (That it skips times that clocks jump over, its documentation says.)
# Expected: one run a day for a schedule that names one time of day.
# Who is hurt: a CronJob with timeZone Australia/Lord_Howe misses a day each April without a
# missed-schedule event; reports and payments at 02:30 run twice each October in Europe, and the
# pages that show the next runs, made with the other libraries, do not say so.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

func main() {
	for _, c := range [][3]string{
		{"15 2 * * *", "Australia/Lord_Howe", "2024-04-06T10:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2024-10-26T12:00:00Z"},
	} {
		schedule, err := cron.ParseStandard("TZ=" + c[1] + " " + c[0])
		if err != nil {
			panic(err)
		}
		at, err := time.Parse(time.RFC3339, c[2])
		if err != nil {
			panic(err)
		}
		fmt.Print("robfig/cron ", c[1], ":")
		for range 3 {
			at = schedule.Next(at)
			fmt.Print(" ", at.UTC().Format(time.RFC3339))
		}
		fmt.Println()
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/robfig/cron/v3@v3.0.1 2>/dev/null
go run -mod=mod . | tee out
npm install --silent --no-save --prefix . cron-parser@5.10.6 croner@11.0.1 >/dev/null
cat >main.mjs <<'EOF'
import { CronExpressionParser } from 'cron-parser'
import { Cron } from 'croner'
const cases = [['15 2 * * *', 'Australia/Lord_Howe', '2024-04-06T10:00:00Z'], ['30 2 * * *', 'Europe/Berlin', '2024-10-26T12:00:00Z']]
const libraries = {
  'cron-parser': (text, tz, from) => {
    const schedule = CronExpressionParser.parse(text, { currentDate: from, tz })
    return [1, 2, 3].map(() => schedule.next().toDate())
  },
  croner: (text, timezone, from) => new Cron(text, { timezone }).nextRuns(3, from),
}
for (const [name, runs] of Object.entries(libraries))
  for (const [text, tz, from] of cases) {
    let found
    try { found = runs(text, tz, new Date(from)).map((d) => d.toISOString().replace('.000', '')).join(' ') } catch (e) { found = e.message }
    console.log(`${name} ${tz}: ${found}`)
  }
EOF
node main.mjs | tee -a out
cat >want <<'EOF'
robfig/cron Australia/Lord_Howe: 2024-04-07T15:45:00Z 2024-04-08T15:45:00Z 2024-04-09T15:45:00Z
robfig/cron Europe/Berlin: 2024-10-27T00:30:00Z 2024-10-27T01:30:00Z 2024-10-28T01:30:00Z
cron-parser Australia/Lord_Howe: Invalid expression, loop limit exceeded
cron-parser Europe/Berlin: 2024-10-27T00:30:00Z 2024-10-28T01:30:00Z 2024-10-29T01:30:00Z
croner Australia/Lord_Howe: 2024-04-06T15:45:00Z 2024-04-07T15:45:00Z 2024-04-08T15:45:00Z
croner Europe/Berlin: 2024-10-27T00:30:00Z 2024-10-28T01:30:00Z 2024-10-29T01:30:00Z
EOF
diff want out
