#!/bin/sh
# libdatetime-format-pg-perl 0.16014 of Debian 12 (DateTime::Format::Pg, by which programs in Perl read PostgreSQL's times and intervals).
#
# Seen: an interval with a fraction and no whole second has its fraction with a minus: 00:00:00.5 is -0.5 seconds, 00:01:00.25 is 59.75 seconds. From one
# second on it is right, 00:01:01.25 is 61.25. Written back to PostgreSQL it is the wrong interval.
# Expected: half a second.
# Who is hurt: latencies, timeouts and ages of leases below a second, and one in sixty of all intervals with fractions: sums and averages of short
# times come out negative, and a wait for "what is left" ends at once.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download libdatetime-format-pg-perl=0.16014-1 libdatetime-perl libdatetime-format-builder-perl libdatetime-format-strptime-perl libdatetime-locale-perl \
  libdatetime-timezone-perl libparams-validate-perl libparams-validationcompiler-perl libmodule-implementation-perl libmodule-runtime-perl libspecio-perl \
  libtry-tiny-perl libnamespace-autoclean-perl libnamespace-clean-perl libpackage-stash-perl libb-hooks-endofscope-perl libsub-identify-perl \
  libdist-checkconflicts-perl libclass-singleton-perl libfile-sharedir-perl libclass-inspector-perl libeval-closure-perl libexception-class-perl \
  libclass-data-inheritable-perl libdevel-stacktrace-perl libmro-compat-perl libsub-exporter-progressive-perl libvariable-magic-perl libclass-factory-util-perl \
  librole-tiny-perl >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.pl <<'EOF'
use strict;
use warnings;
use DateTime::Format::Pg;

for my $interval ('00:00:01.5', '00:00:00.5', '-00:00:00.5', '00:01:01.25', '00:01:00.25', '1 day 00:00:00.75') {
  my $read = DateTime::Format::Pg->parse_duration($interval);
  my ($days, $minutes, $seconds, $nanoseconds) = $read->in_units('days', 'minutes', 'seconds', 'nanoseconds');
  printf "%s: %s seconds, written %s\n", $interval, ($days * 1440 + $minutes) * 60 + $seconds + $nanoseconds / 1e9, DateTime::Format::Pg->format_duration($read);
}
EOF
perl -Iusr/share/perl5 -Iusr/lib/x86_64-linux-gnu/perl5/5.36 main.pl | tee out
cat >want <<'EOF'
00:00:01.5: 1.5 seconds, written @ 1.500000 seconds
00:00:00.5: -0.5 seconds, written @ -0.500000 seconds
-00:00:00.5: -0.5 seconds, written @ -0.500000 seconds
00:01:01.25: 61.25 seconds, written @ 1 minutes 1.250000 seconds
00:01:00.25: 59.75 seconds, written @ 1 minutes -0.250000 seconds
1 day 00:00:00.75: 86399.25 seconds, written @ 1 days -0.750000 seconds
EOF
diff want out
