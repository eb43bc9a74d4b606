#!/bin/sh
# libcrypt-jwt-perl 0.034 of Debian 12 (Crypt::JWT), decode_jwt with verify_aud.
#
# Seen: verify_aud matches the claim against a regular expression as if it were one text. A service account's token has a list
# of audiences, also when there is one only; in Perl a list is the text "ARRAY(0x...)", and the token is refused. A
# subroutine in place of the expression gets a list for such a token, and a text for other issuers'.
# Expected: RFC 7519, section 4.1.3: the claim is a list in the general case, and one member has to match.
# Who is hurt: services in Perl that ask which Pod is calling: with the documented option no token is accepted, and without
# it, so is one that was issued for another audience.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download libcrypt-jwt-perl=0.034-1 libcryptx-perl libjson-perl >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.pl <<'EOF'
use strict;
use warnings;
use Crypt::JWT qw(decode_jwt encode_jwt);

for my $aud ('vault', ['vault'], ['vault', 'other']) {
    my $claims = { iss => 'https://kubernetes.default.svc', sub => 'system:serviceaccount:a:b', aud => $aud };
    my $token = encode_jwt(payload => $claims, alg => 'HS256', key => 'key');
    my $shown = ref $aud ? 'list of ' . @$aud : 'text';
    my $got = eval { decode_jwt(token => $token, key => 'key', verify_aud => qr/^vault$/); 'accepted' } || $@ =~ s/ at .*//sr;
    print "$shown: $got\n";
}
EOF
perl -Iusr/share/perl5 -Iusr/lib/x86_64-linux-gnu/perl5/5.36 main.pl | tee out
cat >want <<'EOF'
text: accepted
list of 1: JWT: aud claim re check failed
list of 2: JWT: aud claim re check failed
EOF
diff want out
