package controllers

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
)

// repairEvery is how often the objects of flow control that are there from the start are
// looked at: what a client does to them costs a write of the server in that time.
const repairEvery = time.Minute

const priorityLevelsPath = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/"

// repair puts the levels and schemas back that are to be there, and removes those that say
// they are of the server and are not. What fails is tried again the next time.
func (f *FlowSchemas) repair(ctx context.Context) {
	f.failed = false
	repaired(ctx, f, priorityLevelsKey, priorityLevelsPath, flowcontrol.FixedLevels(), flowcontrol.RepairLevel)
	repaired(ctx, f, flowSchemasKey, flowSchemasPath, flowcontrol.FixedSchemas(f.Release), flowcontrol.RepairSchema)
}

// object is a pointer to one.
type object[T any] interface {
	*T
	metav1.Object
}

func repaired[T any, P object[T]](ctx context.Context, f *FlowSchemas, storage, path string, fixed []flowcontrol.Fixed[P], repair func(P, flowcontrol.Fixed[P]) bool) {
	known := make(map[string]bool, len(fixed))
	for _, want := range fixed {
		name := want.Object.GetName()
		known[name] = true
		item := f.Cache.Get(storage, "", name)
		if item == nil {
			f.write(ctx, http.MethodPost, path[:len(path)-1], want.Object)
			continue
		}
		have := P(new(T))
		if item.Corrupt == nil && json.Unmarshal(item.JSON(), have) == nil && repair(have, want) {
			have.SetResourceVersion(strconv.FormatInt(item.Revision, 10))
			f.write(ctx, http.MethodPut, path+name, have)
		}
	}
	f.Cache.Snapshot(storage).Ascend("", "", "", func(item *cache.Item) bool {
		var have metav1.PartialObjectMetadata
		if !known[item.Name] && item.Corrupt == nil && json.Unmarshal(item.JSON(), &have) == nil && flowcontrol.Claimed(&have.ObjectMeta) {
			version := strconv.FormatInt(item.Revision, 10)
			f.write(ctx, http.MethodDelete, path+item.Name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
		}
		return ctx.Err() == nil
	})
}

// write writes an object as a stock server does.
func (f *FlowSchemas) write(ctx context.Context, method, path string, body any) {
	f.Queue.Add(1)
	f.Queue.Work(func() bool {
		err := f.API.Call(ctx, flowcontrol.Producer, method, path, "application/json", body, nil)
		if err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || ctx.Err() != nil {
			return true // somebody was faster
		}
		level := slog.LevelDebug // what follows will be for the same reason
		if !f.failed {
			level, f.failed = slog.LevelWarn, true
		}
		f.Log.Log(ctx, level, "cannot repair an object of flow control", "method", method, "path", path, "error", err)
		return false
	})
}
