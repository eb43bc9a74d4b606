package controllers

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/release"
)

const (
	flowSchemasKey    = "flowschemas.flowcontrol.apiserver.k8s.io"
	flowSchemasPath   = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/"
	priorityLevelsKey = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
)

// FlowSchemas keeps the Dangling condition of flow schemas true, and repairs the schemas
// and levels that are there from the start. A change of a schema costs a write at most, the
// coming and going of a priority level one for each schema that names it.
type FlowSchemas struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	Clock func() time.Time
	Retry time.Duration // how soon a failure is tried again; 0: 1 second
	Queue *Queue        // nil: the work is not measured

	Release release.Version // whose schemas there are

	levels  map[string]bool
	schemas map[string]schemaState
	failed  bool // something in this pass of repair
}

// schemaState is what counts of a flow schema.
type schemaState struct {
	Spec struct {
		Level struct{ Name string } `json:"priorityLevelConfiguration"`
	}
	Status struct {
		Conditions []flowcontrolv1.FlowSchemaCondition
	}
}

// Run works until ctx ends.
func (f *FlowSchemas) Run(ctx context.Context) error {
	minute := time.NewTicker(repairEvery)
	defer minute.Stop()
	f.repair(ctx)
	return again(ctx, f.Retry, func(ctx context.Context) bool {
		select {
		case <-minute.C: // also while conditions cannot be written
			f.repair(ctx)
		default:
		}
		f.follow(ctx, minute.C)
		return false
	})
}

// follow works whenever a schema or a level changes. It returns when something failed,
// or a watcher was cut off, so that Run begins again.
func (f *FlowSchemas) follow(ctx context.Context, minute <-chan time.Time) {
	f.levels, f.schemas = map[string]bool{}, map[string]schemaState{}
	watch := func(storage string, set func(*cache.Item)) *cache.Watcher {
		w, snapshot := f.Cache.WatchNow(storage, cache.Scope{})
		snapshot.Ascend("", "", "", func(item *cache.Item) bool {
			set(item)
			return true
		})
		return w
	}
	levels, schemas := watch(priorityLevelsKey, f.setLevel), watch(flowSchemasKey, f.setSchema)
	defer levels.Stop()
	defer schemas.Stop()
	for f.say(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-minute:
			f.repair(ctx)
		case <-levels.Ready():
		case <-schemas.Ready():
		}
		if !took(ctx, levels, f.setLevel, func(name string) { delete(f.levels, name) }) ||
			!took(ctx, schemas, f.setSchema, func(name string) { delete(f.schemas, name) }) {
			return
		}
	}
}

// took hands on what a watcher has, which may be nothing, and says whether the watcher
// goes on.
func took(ctx context.Context, w *cache.Watcher, set func(*cache.Item), gone func(name string)) bool {
	batch, _, err := w.Take(ctx, nil)
	if err != nil {
		return false
	}
	for _, d := range batch {
		if d.Type == cache.Deleted {
			gone(d.Item().Name)
		} else {
			set(d.Item())
		}
	}
	return true
}

// A level that cannot be read is none: no request falls under it.
func (f *FlowSchemas) setLevel(item *cache.Item) { f.levels[item.Name] = item.Corrupt == nil }

func (f *FlowSchemas) setSchema(item *cache.Item) {
	var s schemaState
	if item.Corrupt != nil || json.Unmarshal(item.JSON(), &s) != nil {
		delete(f.schemas, item.Name)
		return
	}
	f.schemas[item.Name] = s
}

// say writes the condition where it is not what it should be.
func (f *FlowSchemas) say(ctx context.Context) bool {
	ok := true
	for name, s := range f.schemas {
		c := flowcontrol.Dangling(s.Spec.Level.Name, f.levels[s.Spec.Level.Name], f.Clock())
		if s.says(&c) {
			continue
		}
		f.Queue.Add(1)
		ok = f.Queue.Work(func() bool {
			path := flowSchemasPath + name + "/status?force=true&fieldManager=" + flowcontrol.Consumer
			err := f.API.Call(ctx, flowcontrol.Consumer, http.MethodPatch, path, "application/apply-patch+yaml", flowcontrol.Applied(name, c), nil)
			if err == nil {
				s.Status.Conditions = []flowcontrolv1.FlowSchemaCondition{c} // as will be heard of soon
				f.schemas[name] = s
			}
			if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
				return true
			}
			f.Log.Warn("cannot say whether a flow schema has its priority level", "name", name, "error", err)
			return false
		}) && ok
	}
	return ok
}

// says tells whether a schema has a condition already, whenever it came to be so.
func (s *schemaState) says(want *flowcontrolv1.FlowSchemaCondition) bool {
	for _, c := range s.Status.Conditions {
		if c.Type == want.Type {
			return c.Status == want.Status && c.Reason == want.Reason && c.Message == want.Message
		}
	}
	return false
}
