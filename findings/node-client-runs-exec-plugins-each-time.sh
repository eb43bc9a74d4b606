#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm), exec plugins of a kubeconfig.
#
# Seen: a credential without expirationTimestamp is not cached: each request starts the plugin
# again, where the API of exec credentials has it used until the server answers 401. The
# plugin gets no KUBERNETES_EXEC_INFO, which kubectl always sets, whatever provideClusterInfo says.
# Expected: one run for any number of requests, and the variable with the kind ExecCredential.
# Who is hurt: users of plugins that give no expiry: a process (and often a sign-in over the
# network) for each request of an operator; and plugins that read the variable for their version
# or for the server's address, which work with kubectl and fail here.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
cat >plugin <<'EOF'
#!/bin/sh
echo "run, KUBERNETES_EXEC_INFO: ${KUBERNETES_EXEC_INFO:-not set}" >>runs
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}'
EOF
chmod +x plugin
cat >main.mjs <<'EOF'
import { KubeConfig } from '@kubernetes/client-node'
const config = new KubeConfig()
config.loadFromString(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users:
- name: u
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never, provideClusterInfo: true}}
`)
for (let i = 0; i < 3; i++) {
  const options = {}
  await config.applyToHTTPSOptions(options)
  console.log('request', i + 1, options.headers.Authorization)
}
EOF
{ node main.mjs; cat runs; } | tee out
cat >want <<'EOF'
request 1 Bearer t
request 2 Bearer t
request 3 Bearer t
run, KUBERNETES_EXEC_INFO: not set
run, KUBERNETES_EXEC_INFO: not set
run, KUBERNETES_EXEC_INFO: not set
EOF
diff want out
