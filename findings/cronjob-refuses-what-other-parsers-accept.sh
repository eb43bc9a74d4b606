#!/bin/sh
# github.com/robfig/cron/v3 v3.0.1 (the schedules of CronJobs); cron-parser 5.10.6, croner 11.0.1, cron-validate 1.5.3 and
# cronstrue 3.12.0 (npm); python3-croniter 1.3.5 of Debian 12.
#
# Seen: a CronJob's weekday ends with 6: `0 0 * * 7` and `5-7` are refused, and all five other libraries accept them, as cron(8)
# does. The other way round, CronJobs take `@every 1h30m`, `?` and the 31st of February, which never comes. The five agree
# with one another on three of the twelve lines.
# Expected: 7 is Sunday, as in every crontab(5). Kubernetes' documentation has a table with 0 to 6, and a link to cron.
# Who is hurt: forms, linters and controllers that check a schedule before they create the CronJob: Sunday jobs moved from a
# crontab pass, and the API refuses them ("end of range (7) above maximum (6)"); others are refused that the API would take.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-croniter=1.3.5-3 python3-dateutil python3-tz python3-six >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
npm install --silent --no-save --prefix . cron-parser@5.10.6 croner@11.0.1 cron-validate@1.5.3 cronstrue@3.12.0 >/dev/null
cat >schedules <<'EOF'
0 0 * * 7
0 0 * * 5-7
0 0 * * fri-mon
0 22-2 * * *
0/15 * * * *
0 0 * * 1#2
0 0 L * *
0 0 ? * ?
0 0 31 2 *
@midnight
@every 1h30m
0 0 0 * * *
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/robfig/cron/v3"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		_, err := cron.ParseStandard(lines.Text())
		fmt.Println(err == nil)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/robfig/cron/v3@v3.0.1 2>/dev/null
go run -mod=mod . <schedules >go.out
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import { CronExpressionParser } from 'cron-parser'
import { Cron } from 'croner'
import validator from 'cron-validate'
import cronstrue from 'cronstrue'

const accepts = (run) => { try { return run() !== false } catch { return false } }
const validate = validator.default ?? validator
for (const line of fs.readFileSync(0, 'utf8').trim().split('\n'))
  console.log([
    accepts(() => CronExpressionParser.parse(line)),
    accepts(() => new Cron(line, { paused: true })),
    accepts(() => validate(line).isValid()),
    accepts(() => cronstrue.toString(line)),
  ].join(' '))
EOF
node main.mjs <schedules >node.out
cat >main.py <<'EOF'
import sys

from croniter import croniter

for line in sys.stdin:
    print(str(croniter.is_valid(line.strip())).lower())
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py <schedules >python.out
{
  echo 'schedule|CronJob|cron-parser|croner|cron-validate|cronstrue|croniter'
  paste -d'|' schedules go.out node.out python.out | sed 's/\(true\|false\) /\1|/g'
} | tee out
cat >want <<'EOF'
schedule|CronJob|cron-parser|croner|cron-validate|cronstrue|croniter
0 0 * * 7|false|true|true|true|true|true
0 0 * * 5-7|false|true|true|true|true|true
0 0 * * fri-mon|false|false|false|false|true|false
0 22-2 * * *|false|false|false|false|true|false
0/15 * * * *|true|true|false|true|true|true
0 0 * * 1#2|false|true|true|false|true|true
0 0 L * *|false|true|true|false|true|true
0 0 ? * ?|true|true|true|false|true|false
0 0 31 2 *|true|false|true|true|true|true
@midnight|true|false|true|false|true|true
@every 1h30m|true|false|false|false|false|false
0 0 0 * * *|false|true|true|false|true|true
EOF
diff want out
