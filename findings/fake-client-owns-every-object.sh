#!/bin/sh
# sigs.k8s.io/controller-runtime v0.25.2, its fake client for tests, with k8s.io/api v0.37.2.
#
# Seen: objects that are created have no UID. IsControlledBy compares UIDs, so that each object is controlled by every other that has made one. A Delete with the
# UID of another object as its precondition deletes; one with a wrong resourceVersion does not. Limit of a List and the label selector of a Watch are
# ignored: all items come, with no continue token, and events of objects that do not match.
# Expected: a UID, as each server gives one, and a refusal for what the fake does not do, as it has for field selectors without an index.
# Who is hurt: authors of controllers: the test that foreign objects are left alone, that an object which was deleted and made again is not deleted by mistake, or
# that a list is read page by page, passes with code that does none of it.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", Labels: map[string]string{"app": name}}}
}

func main() {
	ctx := context.Background()
	c := fake.NewClientBuilder().Build()
	watch, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"app": "nothing"})
	if err != nil {
		panic(err)
	}
	one, two := configMap("one"), configMap("two")
	for _, object := range []*corev1.ConfigMap{one, two} {
		if err := c.Create(ctx, object); err != nil {
			panic(err)
		}
	}
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(one, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	fmt.Printf("UIDs: %q %q, made by one, controlled by one: %v, by two: %v\n", one.UID, two.UID, metav1.IsControlledBy(owned, one), metav1.IsControlledBy(owned, two))
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.Limit(1)); err != nil {
		panic(err)
	}
	fmt.Printf("List with Limit 1: %d items, continue %q\n", len(list.Items), list.Continue)
	event := <-watch.ResultChan()
	fmt.Printf("Watch of app=nothing: %s %s\n", event.Type, event.Object.(*corev1.ConfigMap).Name)
	uid, version := types.UID("of another"), "12345"
	fmt.Println("Delete with a wrong UID:", c.Delete(ctx, configMap("one"), client.Preconditions{UID: &uid}))
	fmt.Println("Delete with a wrong resourceVersion, an error:", c.Delete(ctx, configMap("two"), client.Preconditions{ResourceVersion: &version}) != nil)
}
END
go mod init finding 2>/dev/null
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/api@v0.37.2 k8s.io/client-go@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'END'
UIDs: "" "", made by one, controlled by one: true, by two: true
List with Limit 1: 2 items, continue ""
Watch of app=nothing: ADDED one
Delete with a wrong UID: <nil>
Delete with a wrong resourceVersion, an error: true
END
diff want out
