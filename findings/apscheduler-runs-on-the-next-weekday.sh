#!/bin/sh
# python3-apscheduler 3.9.1 of Debian 12, CronTrigger.from_crontab, by which services in Python run the schedules of crontabs and CronJobs.
#
# Seen: a weekday that is a number counts from Monday as 0: `0 0 * * 1` runs on Tuesdays, `1-5` from Tuesday to Saturday, and 0 is Monday. By name, `mon`, it is
# right, 7 is refused, and a schedule with both day fields runs where both agree, not where one does.
# Expected: "a standard crontab expression", as the method's documentation has it, in which 0 is Sunday.
# Who is hurt: schedules that move between a CronJob and a service in Python, or are read from one to foresee its runs: a report of Monday comes on Tuesday, and
# a job "on working days" works on Saturday and not on Monday, with nothing in a log.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-apscheduler=3.9.1-2 python3-tz python3-tzlocal python3-six python3-pkg-resources python3-pytz-deprecation-shim python3-dateutil >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'END'
from datetime import datetime, timedelta, timezone

from apscheduler.triggers.cron import CronTrigger

for expression in ('0 0 * * 1', '0 0 * * mon', '0 0 * * 1-5', '0 0 * * 0', '0 0 * * 7', '0 0 1 * 1', '0 0 1 * mon'):
    try:
        trigger = CronTrigger.from_crontab(expression, timezone='UTC')
    except ValueError as e:
        print(f'{expression}: {e}')
        continue
    last, now, days = None, datetime(2024, 1, 1, tzinfo=timezone.utc) - timedelta(seconds=1), []
    while len(days) < 5:
        last = trigger.get_next_fire_time(last, now)
        now = last + timedelta(seconds=1)
        days.append(last.strftime('%a %m-%d'))
    print(f'{expression}: {", ".join(days)}')
END
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'END'
0 0 * * 1: Tue 01-02, Tue 01-09, Tue 01-16, Tue 01-23, Tue 01-30
0 0 * * mon: Mon 01-01, Mon 01-08, Mon 01-15, Mon 01-22, Mon 01-29
0 0 * * 1-5: Tue 01-02, Wed 01-03, Thu 01-04, Fri 01-05, Sat 01-06
0 0 * * 0: Mon 01-01, Mon 01-08, Mon 01-15, Mon 01-22, Mon 01-29
0 0 * * 7: Error validating expression '7': the last value (7) is higher than the maximum value (6)
0 0 1 * 1: Tue 10-01, Tue 04-01, Tue 07-01, Tue 09-01, Tue 12-01
0 0 1 * mon: Mon 01-01, Mon 04-01, Mon 07-01, Mon 09-01, Mon 12-01
END
diff want out
