#!/bin/sh
# k8s.io/kubectl v0.37.2 (`kubectl set env --from=configmap/NAME`, the same for Secrets).
#
# Seen: the variables are written in the order of a Go map, which begins somewhere else in each run. If two keys make one name (log.level and log-level are both
# LOG_LEVEL), the one that comes last wins: which value the container gets is drawn each time, and the only sign is the warning that each key was renamed.
# Expected: the order of the keys' names, as in `kubectl get` and `kubectl describe` of the same ConfigMap, and an error for two keys of one name.
# Who is hurt: pipelines that write manifests by `set env ... --dry-run=client -o yaml`: each run changes the template, so that all Pods are replaced; a
# variable that refers to another by $(NAME) works only if that one comes before; and with two such keys two clusters differ.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/set"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

var answers = map[string]string{
	"/api":         `{"kind":"APIVersions","versions":["v1"]}`,
	"/api/v1":      `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["get"]}]}`,
	"/apis":        `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
	"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["get"]}]}`,
	"/api/v1/namespaces/default/configmaps/settings": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"default"},
		"data":{"HOST":"a","PORT":"b","USER":"c","MODE":"d","ZONE":"e"}}`,
	"/api/v1/namespaces/default/configmaps/levels": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"levels","namespace":"default"},
		"data":{"log.level":"debug","log-level":"error"}}`,
	"/apis/apps/v1/namespaces/default/deployments/web": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},
		"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web"}]}}}}`,
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	run := func(from, path string) string {
		flags := genericclioptions.NewConfigFlags(false)
		namespace := "default"
		flags.APIServer, flags.Namespace = &server.URL, &namespace
		var out, errors bytes.Buffer
		command := set.NewCmdEnv(cmdutil.NewFactory(flags), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errors})
		command.SetArgs([]string{"deployment/web", "--from=configmap/" + from, "--dry-run=client", "-o", "jsonpath={.spec.template.spec.containers[0].env[*]." + path + "}"})
		if err := command.Execute(); err != nil {
			panic(err)
		}
		return strings.TrimSpace(out.String())
	}
	orders, winners := map[string]bool{}, map[string]bool{}
	for range 40 {
		orders[run("settings", "name")] = true
		winners[run("levels", "valueFrom.configMapKeyRef.key")] = true
	}
	fmt.Println("more than one order in 40 runs:", len(orders) > 1)
	fmt.Println("LOG_LEVEL of log.level or log-level alone:", winners["log.level"], winners["log-level"], "of both:", len(winners) > 2)
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/kubectl@v0.37.2 2>/dev/null
go run -mod=mod . 2>/dev/null | tee out
cat >want <<'EOF'
more than one order in 40 runs: true
LOG_LEVEL of log.level or log-level alone: true true of both: false
EOF
diff want out
