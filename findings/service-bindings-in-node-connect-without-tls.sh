#!/bin/sh
# kube-service-bindings 2.1.0 (npm), which reads the files that the Service Binding Specification for Kubernetes mounts.
#
# Seen: for kafkajs the protocols SSL and SASL_PLAINTEXT both become `ssl: undefined`, which connects without TLS, and a list of
# brokers is one broker, "a:9093,b:9093". For PostgreSQL by ODBC the user is read from a file "user", while the specification's
# well-known entry is "username": the connection string has "Username=undefined". A password loses blanks at its ends.
# Expected: TLS for SSL, two brokers, the user of the entry that the specification names, and the password as it is.
# Who is hurt: applications with a bound Kafka or PostgreSQL: they fail at sign-in with the right Secret, and where a broker has a
# listener without TLS too, they use it without a word.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . kube-service-bindings@2.1.0 >/dev/null
for protocol in SSL SASL_SSL SASL_PLAINTEXT; do
  mkdir -p "$protocol/kafka"
  printf kafka >"$protocol/kafka/type"
  printf 'a:9093,b:9093' >"$protocol/kafka/bootstrapServers"
  printf %s "$protocol" >"$protocol/kafka/securityProtocol"
done
mkdir -p database/pg
printf postgresql >database/pg/type
printf db >database/pg/host
printf app >database/pg/username
printf ' secret ' >database/pg/password
cat >main.mjs <<'EOF'
import bindings from 'kube-service-bindings'

for (const root of ['SSL', 'SASL_SSL', 'SASL_PLAINTEXT']) {
  process.env.SERVICE_BINDING_ROOT = root
  const { ssl, brokers } = bindings.getBinding('KAFKA', 'kafkajs')
  console.log(`kafkajs, ${root}: ssl ${ssl}, brokers ${JSON.stringify(brokers)}`)
}
process.env.SERVICE_BINDING_ROOT = 'database'
console.log('odbc:', bindings.getBinding('POSTGRESQL', 'odbc').connectionString.match(/Username=[^;]*;Password=[^;]*/)[0])
console.log('pg:', JSON.stringify(bindings.getBinding('POSTGRESQL', 'pg').password))
EOF
node main.mjs | tee out
cat >want <<'EOF'
kafkajs, SSL: ssl undefined, brokers ["a:9093,b:9093"]
kafkajs, SASL_SSL: ssl true, brokers ["a:9093,b:9093"]
kafkajs, SASL_PLAINTEXT: ssl undefined, brokers ["a:9093,b:9093"]
odbc: Username=undefined;Password=secret
pg: "secret"
EOF
diff want out
