// Package controllertest is the environment of tests of controllers: a cache, and an API that writes to it.
//
// A FakeAPI is safe for concurrent use. RunInBubble runs a controller in a goroutine that ends before it returns.
package controllertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore"
)

// FakeAPI is a cache, and an API that writes to it and records its calls.
type FakeAPI struct {
	T         *testing.T
	Catalogue *kinds.Catalogue
	Cache     *cache.Cache

	mu     sync.Mutex
	last   int64
	live   map[sqlstore.Key]sqlstore.Row
	calls  []string
	Refuse func(method, path string) error // nil: nothing is
	Early  func(method, path string)       // runs before a write; nil: nothing does
	Alter  func(text string) string        // changes the result of patches, as webhooks may; nil: no change
}

func NewFakeAPI(t *testing.T) *FakeAPI {
	catalogue := kinds.NewCatalogue(builtin.Config{Release: release.Newest}.Resources())
	return &FakeAPI{T: t, Catalogue: catalogue, Cache: cache.New(catalogue), live: map[sqlstore.Key]sqlstore.Row{}}
}

// Set writes an object like a client; text is its JSON without the fields of the key; "" deletes it.
func (w *FakeAPI) Set(storage, namespace, name, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setLocked(storage, namespace, name, text)
}

func (w *FakeAPI) setLocked(storage, namespace, name, text string) {
	w.Cache.Apply([]sqlstore.Change{w.changeLocked(storage, namespace, name, text)})
}

func (w *FakeAPI) changeLocked(storage, namespace, name, text string) sqlstore.Change {
	w.last++
	key := sqlstore.Key{Resource: storage, Namespace: namespace, Name: name}
	old, was := w.live[key]
	row := sqlstore.Row{Key: key, Revision: w.last, Value: old.Value, Deleted: text == ""}
	if text == "" {
		delete(w.live, key)
	} else {
		row.Value = w.whole(key, text)
		w.live[key] = row
	}
	change := sqlstore.Change{Row: row}
	if was {
		change.PrevRevision, change.PrevValue = old.Revision, old.Value
	}
	return change
}

// Write is an object as Set writes it.
type Write struct{ Storage, Namespace, Name, Text string }

// Commit applies writes as one batch, and calls halfway when the cache shows those of the first storage by
// name, but no others and not their revision. halfway must not write. It is for use in RunInBubble.
func (w *FakeAPI) Commit(halfway func(), writes ...Write) {
	w.mu.Lock()
	var batch []sqlstore.Change
	first := writes[0].Storage
	for _, one := range writes {
		first = min(first, one.Storage)
		batch = append(batch, w.changeLocked(one.Storage, one.Namespace, one.Name, one.Text))
	}
	w.mu.Unlock()
	stop := &stopper{reached: make(chan struct{}), resume: make(chan struct{})}
	watcher, _ := w.Cache.WatchNow(first, cache.Scope{Group: stop})
	defer watcher.Stop()
	watcher.Ready() // which it waits for from now on
	applied := make(chan struct{})
	go func() { // ends below
		defer close(applied)
		w.Cache.Apply(batch)
	}()
	<-stop.reached
	halfway()
	close(stop.resume)
	<-applied
	synctest.Wait()
}

// stopper stops a cache that notifies its watcher.
type stopper struct {
	once            sync.Once
	reached, resume chan struct{}
}

func (s *stopper) AddWriter() {
	s.once.Do(func() {
		close(s.reached)
		<-s.resume
	})
}

func (*stopper) RemoveWriter() {}
func (*stopper) ID() uint64    { return 1 }

// Seal makes an object unreadable.
func (w *FakeAPI) Seal(storage, namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	key := sqlstore.Key{Resource: storage, Namespace: namespace, Name: name}
	old := w.live[key]
	row := sqlstore.Row{Key: key, Revision: w.last, Unopened: errors.New("its key is away")}
	w.live[key] = row
	w.Cache.Apply([]sqlstore.Change{{Row: row, PrevRevision: old.Revision, PrevValue: old.Value}})
}

func (w *FakeAPI) whole(key sqlstore.Key, text string) []byte {
	tree := map[string]any{}
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		w.T.Fatal(err, text)
	}
	tree["apiVersion"], tree["kind"] = w.Catalogue.ByStorage(key.Resource).Storage.GVK.ToAPIVersionAndKind()
	metadata, _ := tree["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	if metadata["name"] = key.Name; key.Namespace != "" {
		metadata["namespace"] = key.Namespace
	}
	if metadata["uid"] == nil {
		metadata["uid"] = "uid-" + key.Name
	}
	delete(metadata, "resourceVersion")
	tree["metadata"] = metadata
	data, err := json.Marshal(tree)
	if err != nil {
		w.T.Fatal(err)
	}
	return data
}

// Read returns an object as JSON; "": it is not there.
func (w *FakeAPI) Read(storage, namespace, name string) string {
	if item := w.Cache.Get(storage, namespace, name); item != nil {
		return string(item.JSON())
	}
	return ""
}

// Calls returns the calls since it was last called.
func (w *FakeAPI) Calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.calls
	w.calls = nil
	return list
}

// turn orders the actions of a test before time advances ahead of the controllers' calls after it, because
// time alone orders nothing for the race detector.
var turn atomic.Int64

// After orders a call of an API after the actions of the test before time advanced.
func After() { turn.Load() }

// Call understands the reads and writes of single objects, and creates missing ones.
func (w *FakeAPI) Call(_ context.Context, _, method, path, _ string, body, into any) error {
	After()
	u, err := url.Parse(path)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.calls = append(w.calls, method+" "+u.Path)
	refuse, early := w.Refuse, w.Early
	w.mu.Unlock()
	if early != nil {
		early(method, u.Path)
	}
	if refuse != nil {
		if err := refuse(method, u.Path); err != nil {
			return err
		}
	}
	storage, namespace, name := parts(u.Path)
	if method == http.MethodPost {
		return w.post(u.Path, body)
	}
	w.mu.Lock() // the change applies to the current object, despite concurrent writes
	defer w.mu.Unlock()
	item := w.Cache.Get(storage, namespace, name)
	if item == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: storage}, name)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: storage}, name, fmt.Errorf("it has changed"))
	var options struct {
		Metadata      metav1.ObjectMeta
		Preconditions *metav1.Preconditions
	}
	if err := json.Unmarshal(data, &options); err != nil {
		return err
	}
	for _, version := range []string{options.Metadata.ResourceVersion, preconditioned(options.Preconditions)} {
		if version != "" && version != fmt.Sprint(item.Revision) {
			return conflict
		}
	}
	switch method {
	case http.MethodDelete:
		w.setLocked(storage, namespace, name, "")
	case http.MethodPut:
		w.setLocked(storage, namespace, name, string(data))
	case http.MethodPatch:
		merged, err := jsonpatch.MergePatch(item.JSON(), data)
		if err != nil {
			return err
		}
		if w.Alter != nil {
			merged = []byte(w.Alter(string(merged)))
		}
		w.setLocked(storage, namespace, name, string(merged))
		if into != nil {
			if err := json.Unmarshal(w.Cache.Get(storage, namespace, name).JSON(), into); err != nil {
				return err
			}
		}
		if item := w.Cache.Get(storage, namespace, name); item.Meta().Deleting && len(reconcile.Finalizers(item)) == 0 {
			w.setLocked(storage, namespace, name, "")
		}
	}
	return nil
}

func (w *FakeAPI) post(path string, body any) error {
	data, err := json.Marshal(body)
	var named metav1.PartialObjectMetadata
	if err == nil {
		err = json.Unmarshal(data, &named)
	}
	if err != nil {
		return err
	}
	storage, namespace, name := parts(path + "/" + named.Name)
	w.Set(storage, namespace, name, string(data))
	return nil
}

func preconditioned(p *metav1.Preconditions) string {
	if p == nil || p.ResourceVersion == nil {
		return ""
	}
	return *p.ResourceVersion
}

// parts reads a path of an object or of its status.
func parts(path string) (storage, namespace, name string) {
	list := strings.Split(strings.Trim(strings.TrimSuffix(path, "/status"), "/"), "/")
	group := ""
	if list[0] == "apis" {
		group = "." + list[1]
	}
	if i := slices.Index(list, "namespaces"); i > 0 && len(list) > i+2 {
		namespace = list[i+1]
	}
	return list[len(list)-2] + group, namespace, list[len(list)-1]
}

// RunInBubble runs a controller in a bubble of time, and calls a function at the same time.
func RunInBubble(t *testing.T, do func(w *FakeAPI), run func(w *FakeAPI) func(context.Context) error) {
	synctest.Test(t, func(t *testing.T) {
		w := NewFakeAPI(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- run(w)(ctx) }()
		synctest.Wait()
		do(w)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Advance lets time go by.
func Advance(d time.Duration) {
	turn.Add(1)
	time.Sleep(d)
	synctest.Wait()
}

// DiscardLog is a log that discards everything.
var DiscardLog = slog.New(slog.DiscardHandler)

// Ago returns a time of the past as objects have it.
func Ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }

// Names returns the names of all objects.
func (w *FakeAPI) Names() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := map[string]bool{}
	for key := range w.live {
		list[key.Name] = true
	}
	return list
}

// Change changes an existing object, and blocks other writes while it does.
func (w *FakeAPI) Change(storage, namespace, name string, change func(text string) string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setLocked(storage, namespace, name, change(w.Read(storage, namespace, name)))
}
