#!/bin/sh
# java.net.http.HttpClient of OpenJDK 17.0.15, python3-httpx 0.23.3 with httpcore 0.16.3 and h2 4.1.0 (Debian 12).
#
# Seen: a server says GOAWAY without an error, naming the request under way as one that it finishes, and answers it 200 half a
# second later. Both clients fail the request when they read the GOAWAY: the JDK closes the connection with all its requests,
# httpx raises for each that is still read. curl gets the answer.
# Expected: RFC 9113, section 6.8: streams up to the last identifier are finished. (The JDK does so from 24 on.)
# Who is hurt: a rolling restart of an API server, or its --goaway-chance, fails the writes under way of operators on the JDK's
# client (fabric8 offers it) and of Python programs, with the outcome unknown, and ends all their watches at once.
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-httpx=0.23.3-1 python3-httpcore=0.16.3-1 python3-h2=4.1.0-4 python3-hpack python3-hyperframe python3-h11 \
  python3-anyio python3-certifi python3-sniffio python3-rfc3986 python3-idna >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost 2>/dev/null
cat >server.mjs <<'EOF'
import fs from 'node:fs'
import http2 from 'node:http2'

const server = http2.createSecureServer({ key: fs.readFileSync('key.pem'), cert: fs.readFileSync('cert.pem') })
server.on('stream', (stream) => {
  stream.on('error', () => {})
  setTimeout(() => stream.session?.goaway(0, stream.id), 300)
  setTimeout(() => {
    if (stream.destroyed) return
    stream.respond({ ':status': 200 })
    stream.end('finished')
  }, 800)
})
server.on('sessionError', () => {})
server.listen(0, '127.0.0.1', () => fs.writeFileSync('port', String(server.address().port)))
EOF
node server.mjs & server=$!
for _ in $(seq 600); do test -s port && break; sleep 0.1; done
url=https://localhost:$(cat port)/
cat >Main.java <<'EOF'
import java.io.FileInputStream;
import java.net.URI;
import java.net.http.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;

public class Main {
    public static void main(String[] args) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        store.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream("cert.pem")));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        HttpClient client = HttpClient.newBuilder().sslContext(context).build();
        try {
            var answer = client.send(HttpRequest.newBuilder(URI.create(args[0])).build(), HttpResponse.BodyHandlers.ofString());
            System.out.println("JDK: " + answer.body() + " " + answer.statusCode());
        } catch (java.io.IOException e) {
            System.out.println("JDK: " + e.getMessage().replaceAll(".*: ", ""));
        }
        System.exit(0);
    }
}
EOF
cat >main.py <<'EOF'
import sys

import httpx

with httpx.Client(http2=True, verify='cert.pem') as client:
    try:
        answer = client.get(sys.argv[1])
        print('httpx:', answer.text, answer.status_code)
    except httpx.HTTPError as e:
        print('httpx:', type(e).__name__, str(e)[:35])
EOF
{
  printf 'curl: '
  curl -s --http2 --cacert cert.pem "$url" -w ' %{http_code} over HTTP/%{http_version}\n'
  java Main.java "$url"
  PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py "$url"
} | tee out
cat >want <<'EOF'
curl: finished 200 over HTTP/2
JDK: GOAWAY received
httpx: RemoteProtocolError <ConnectionTerminated error_code:0,
EOF
diff want out
