#!/bin/sh
# k8s.io/client-go v0.37.2, kubernetes/fake.NewClientset, the fake typed client for tests.
#
# Seen: a Create and a Delete with DryRun create and delete. DeleteCollection deletes nothing and returns no error. UpdateStatus changes the spec, an Update with an old
# resourceVersion succeeds, and two objects with generateName are one conflict, because the first is stored under the empty name.
# Expected: a rehearsal that changes nothing, and an error for what the fake does not do.
# Who is hurt: authors of tools with a rehearsal and of controllers: the test that a dry run changes nothing cannot be written; the one of a clean-up by DeleteCollection
# finds all objects and is "mended" in the code; a status that is written by the wrong call, or over a newer object, passes.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: node}}
}

func main() {
	ctx := context.Background()
	pods := fake.NewClientset(pod("one", "n1"), pod("two", "n1"), pod("three", "n1")).CoreV1().Pods("a")
	names := func() (all []string) {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			panic(err)
		}
		for _, item := range list.Items {
			all = append(all, item.Name)
		}
		return all
	}
	dry := []string{metav1.DryRunAll}
	_, err := pods.Create(ctx, pod("rehearsed", ""), metav1.CreateOptions{DryRun: dry})
	fmt.Println("Create, DryRun:", err, names())
	fmt.Println("Delete, DryRun:", pods.Delete(ctx, "one", metav1.DeleteOptions{DryRun: dry}), names())
	fmt.Println("DeleteCollection:", pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=web"}), names())
	updated, err := pods.UpdateStatus(ctx, pod("two", "n2"), metav1.UpdateOptions{})
	fmt.Println("UpdateStatus, the node afterwards:", updated.Spec.NodeName, err)
	old := pod("three", "n3")
	old.ResourceVersion = "1"
	newer := pod("three", "n4")
	newer.ResourceVersion = "2"
	if _, err := pods.Update(ctx, newer, metav1.UpdateOptions{}); err != nil {
		panic(err)
	}
	updated, err = pods.Update(ctx, old, metav1.UpdateOptions{})
	fmt.Println("Update with the version 1 after 2:", updated.Spec.NodeName, err)
	for range 2 {
		generated, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"}}, metav1.CreateOptions{})
		if err != nil {
			fmt.Println("generateName:", err)
		} else {
			fmt.Printf("generateName: %q\n", generated.Name)
		}
	}
}
END
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'END'
Create, DryRun: <nil> [one rehearsed three two]
Delete, DryRun: <nil> [rehearsed three two]
DeleteCollection: <nil> [rehearsed three two]
UpdateStatus, the node afterwards: n2 <nil>
Update with the version 1 after 2: n3 <nil>
generateName: ""
generateName: pods "" already exists
END
diff want out
