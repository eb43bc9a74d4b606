package flow

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
)

// repairEvery is the interval of checking the initial objects of flow control: a client's changes to them cause at most
// one write of the server in that time.
const repairEvery = time.Minute

// repair restores the mandatory and suggested levels and schemas, and deletes objects that are marked as the server's but are
// not among them.
func (c *Controller) repair(ctx context.Context) error {
	return errors.Join(
		repair(ctx, c, levelsStorage, levelsPath, flowcontrol.FixedLevels(), flowcontrol.RepairLevel),
		repair(ctx, c, schemasStorage, schemasPath, flowcontrol.FixedSchemas(c.Release), flowcontrol.RepairSchema),
	)
}

// object is a pointer to one.
type object[T any] interface {
	*T
	metav1.Object
}

func repair[T any, P object[T]](ctx context.Context, c *Controller, storage, path string, fixed []flowcontrol.Fixed[P], mend func(P, flowcontrol.Fixed[P]) bool) error {
	var failed error
	write := func(method, path string, body any) {
		if err := c.API.Call(ctx, flowcontrol.Producer, method, path, reconcile.JSON, body, nil); err != nil && !reconcile.Superseded(err) {
			failed = err
		}
	}
	known := make(map[string]bool, len(fixed))
	for _, want := range fixed {
		name := want.Object.GetName()
		known[name] = true
		item := c.Cache.Get(storage, "", name)
		if item == nil {
			write(http.MethodPost, path[:len(path)-1], want.Object)
			continue
		}
		have := P(new(T))
		if reconcile.Decode(item, have) && mend(have, want) {
			have.SetResourceVersion(strconv.FormatInt(item.Revision, 10))
			write(http.MethodPut, path+name, have)
		}
	}
	c.Cache.Snapshot(storage).Ascend("", "", "", func(item *cache.Item) bool {
		var have metav1.PartialObjectMetadata
		if !known[item.Name] && reconcile.Decode(item, &have) && flowcontrol.Claimed(&have.ObjectMeta) {
			if err := c.Delete(ctx, flowcontrol.Producer, path+item.Name, item); err != nil && !reconcile.Superseded(err) {
				failed = err
			}
		}
		return ctx.Err() == nil
	})
	return failed
}
