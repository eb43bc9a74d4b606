#!/bin/sh
# k8s.io/apimachinery v0.37.2, metav1.ParseToLabelSelector (kubectl create poddisruptionbudget --selector, and
# programs that take a selector as text and keep it in an object).
#
# Seen: of two conditions on one label the last is kept: "app=a,app=b", which matches nothing, becomes {app: b}; and
# "app!=a", which labels.Parse and every --selector of kubectl get accept, is refused as "not a valid label selector operator".
# Expected: its comment promises to keep it in sync with the parser of labels: an object that selects the same Pods as
# the text (app in (a) and app in (b); app notin (a)).
# Who is hurt: generated selectors that join a user's and a program's conditions with a comma: the list shows
# nothing, the budget or policy made of the same text covers the Pods of b.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func main() {
	pod := labels.Set{"app": "b"}
	for _, text := range []string{"app=b", "app=a,app=b", "app in (a),app in (b)", "app!=a", "app notin (a)"} {
		selector, err := labels.Parse(text)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: as text matches app=b: %v; ", text, selector.Matches(pod))
		object, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			fmt.Println("as an object:", err)
			continue
		}
		selector, err = metav1.LabelSelectorAsSelector(object)
		if err != nil {
			panic(err)
		}
		fmt.Println("as an object:", selector.Matches(pod))
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
app=b: as text matches app=b: true; as an object: true
app=a,app=b: as text matches app=b: false; as an object: true
app in (a),app in (b): as text matches app=b: false; as an object: false
app!=a: as text matches app=b: true; as an object: "!=" is not a valid label selector operator
app notin (a): as text matches app=b: true; as an object: true
EOF
diff want out
