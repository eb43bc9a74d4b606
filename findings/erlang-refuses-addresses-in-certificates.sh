#!/bin/sh
# erlang-ssl and erlang-inets 25.2.3 of Debian 12 (Erlang/OTP; Elixir's clients stand on them).
#
# Seen: with verify_peer, a connection to the text "127.0.0.1" is refused (hostname_check_failed) though the certificate has
# this address among its alternative names: the text counts as a DNS name, which is compared with DNS names only. The tuple
# {127,0,0,1} in its place is accepted, but httpc, which reads a URL, passes the text.
# Expected: an address in a URL is compared with the certificate's addresses, as OpenSSL's clients, Go, Java and Node do.
# Who is hurt: programs inside of a cluster: KUBERNETES_SERVICE_HOST is an address. They fail with a certificate that is
# right, and the next step is verify_none, which gives the service account's token to whoever answers.
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
v=1:25.2.3+dfsg-1+deb12u4
apt-get download erlang-base=$v erlang-crypto=$v erlang-asn1=$v erlang-public-key=$v erlang-ssl=$v erlang-inets=$v \
  erlang-runtime-tools=$v erlang-syntax-tools=$v erlang-mnesia=$v >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out request.pem -subj /CN=kubernetes 2>/dev/null
echo 'subjectAltName=DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1' >names
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -days 2 -out cert.pem 2>/dev/null
port=${FINDING_PORT:-23790}
openssl s_server -accept "127.0.0.1:$port" -cert cert.pem -key key.pem -www >/dev/null 2>&1 & server=$!
for _ in $(seq 600); do openssl s_client -connect "127.0.0.1:$port" </dev/null >/dev/null 2>&1 && break; sleep 0.1; done
cat >main.erl <<'EOF'
-module(main).
-export([start/1]).

start([Port]) ->
    logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(ssl),
    {ok, _} = application:ensure_all_started(inets),
    Options = [{verify, verify_peer}, {cacertfile, "ca.pem"}],
    [io:format("ssl:connect ~p: ~s~n", [Host, result(ssl:connect(Host, list_to_integer(Port), Options, 10000))])
     || Host <- ["localhost", "127.0.0.1", {127, 0, 0, 1}]],
    [io:format("httpc ~s: ~s~n", [Host, result(httpc:request(get, {"https://" ++ Host ++ ":" ++ Port ++ "/", []}, [{ssl, Options}], []))])
     || Host <- ["localhost", "127.0.0.1"]],
    halt().

result({ok, {sslsocket, _, _} = Socket}) -> ssl:close(Socket), "ok";
result({ok, _}) -> "ok";
result({error, Reason}) ->
    case string:find(io_lib:format("~p", [Reason]), "hostname_check_failed") of
        nomatch -> io_lib:format("~0p", [Reason]);
        _ -> "hostname_check_failed"
    end.
EOF
export ROOTDIR="$dir/usr/lib/erlang" EMU=beam PROGNAME=erl
BINDIR=$(echo "$ROOTDIR"/erts-*/bin)
export BINDIR
"$BINDIR/erlexec" -boot "$ROOTDIR/bin/no_dot_erlang" -noshell -eval 'compile:file("main.erl"), halt().'
"$BINDIR/erlexec" -boot "$ROOTDIR/bin/no_dot_erlang" -noshell -run main start "$port" | tee out
cat >want <<'EOF'
ssl:connect "localhost": ok
ssl:connect "127.0.0.1": hostname_check_failed
ssl:connect {127,0,0,1}: ok
httpc localhost: ok
httpc 127.0.0.1: hostname_check_failed
EOF
diff want out
