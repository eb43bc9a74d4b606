#!/bin/sh
# sigs.k8s.io/controller-runtime v0.25.2 (the result of Reconcile) and k8s.io/client-go v0.37.2 (util/workqueue, on which it stands).
#
# Seen: a reconciler that returns RequeueAfter below zero, or zero, is not called again. AddAfter of the workqueue calls at once for the same value.
# Expected: a time that has just passed is due: `RequeueAfter: time.Until(deadline)` is how controllers wait for an expiry, and it is negative if the
# reconciliation took longer than what was left. The field's comment has "if greater than 0", and nothing of what happens else.
# Who is hurt: controllers that renew certificates or end leases: the object whose deadline passes during a reconciliation is left alone until something
# else changes it or the cache is listed again, which is after ten hours. It happens under load only.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "certificate"}}

func reconciled(after time.Duration) int32 {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	var calls atomic.Int32
	c, err := controller.NewUnmanaged(fmt.Sprint("after", after.Nanoseconds()), controller.Options{
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			if calls.Add(1) == 1 {
				return reconcile.Result{RequeueAfter: after}, nil
			}
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		panic(err)
	}
	if err := c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(request)
		return nil
	})); err != nil {
		panic(err)
	}
	if err := c.Start(ctx); err != nil {
		panic(err)
	}
	return calls.Load()
}

func main() {
	queue := workqueue.NewTypedDelayingQueue[string]()
	queue.AddAfter("certificate", -time.Millisecond)
	time.Sleep(time.Second)
	fmt.Println("workqueue, after -1ms: in the queue", queue.Len())
	queue.ShutDown()
	for _, after := range []time.Duration{time.Millisecond, 0, -time.Millisecond} {
		fmt.Printf("controller-runtime, after %v: calls %d\n", after, reconciled(after))
	}
}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/client-go@v0.37.2 2>/dev/null
go run -mod=mod . 2>/dev/null | tee out
cat >want <<'EOF'
workqueue, after -1ms: in the queue 1
controller-runtime, after 1ms: calls 2
controller-runtime, after 0s: calls 1
controller-runtime, after -1ms: calls 1
EOF
diff want out
