#!/bin/sh
# github.com/yannh/kubeconform v0.8.0, with a schema of its own in a file.
#
# Seen: -strict refuses a key that is there twice, but not inside of a List, whose items are read, written and read again first: the second value wins without a
# word. A List whose items are misspelled, or null, has nothing to check, and is a success.
# Expected: "-strict: disallow additional properties not in schema or duplicated keys", for each document; and an error for a List without items, as kubectl has it
# ("no objects passed to apply").
# Who is hurt: repositories with `kind: List`, as `kubectl get -o yaml` writes and some generators do: a duplicated `env` or `resources` passes the pipeline and
# the cluster takes one of them; a file of which nothing is applied is green.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
go mod init finding 2>/dev/null
go get github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0 2>/dev/null
go build -mod=mod -o kubeconform github.com/yannh/kubeconform/cmd/kubeconform
cat >configmap.json <<'END'
{"type": "object", "additionalProperties": false, "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
 "metadata": {"type": "object"}, "data": {"type": "object", "additionalProperties": {"type": "string"}}}}
END
check() { # NAME: standard input
  if ./kubeconform -strict -summary -schema-location '{{ .ResourceKind }}.json' - >result 2>&1; then status=ok; else status=refused; fi
  echo "$1: $status, $(grep -o 'duplicated\? key[^,]*\|key .* already set[^,]*\|Valid: .*' result | head -1)"
}
{
  printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {mode: "1", mode: "2"}\n' | check 'a key twice'
  printf 'apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data: {mode: "1", mode: "2"}\n' | check 'a key twice, in a List'
  printf 'apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  more: 1\n' | check 'an unknown field, in a List'
  printf 'apiVersion: v1\nkind: List\nitem:\n- apiVersion: v1\n  kind: ConfigMap\n  more: 1\n' | check 'a List with "item"'
} | tee out
cat >want <<'END'
a key twice: refused, key "mode" already set in map
a key twice, in a List: ok, Valid: 1, Invalid: 0, Errors: 0, Skipped: 0
an unknown field, in a List: refused, Valid: 0, Invalid: 1, Errors: 0, Skipped: 0
a List with "item": ok, Valid: 0, Invalid: 0, Errors: 0, Skipped: 0
END
diff want out
