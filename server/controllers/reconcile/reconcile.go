// Package reconcile holds the parts of the server's controllers: a work queue, the loop that fills it from
// watches of the cache and reconciles one key after another, the metrics of both, and the Lease that elects
// the server that works.
//
// A key is in a queue once, however often it is added, and at most one worker has it at a time. A key that
// changed waits for the debounce time; one that failed is retried after an exponential backoff; one whose
// reconciliation took long pauses before the next. Keys of different namespaces take turns.
//
// Goroutines: Loop.Run works in that of its caller, unless it has several workers, which end before it
// returns. Queue and Meter are safe for concurrent use.
package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/aggregator/documents"
	"github.com/rowlock/rowlock/server/cache"
)

// API is the server's own API, called in process; server.Server is one. body and into are encoded and decoded as JSON,
// and may be nil.
type API interface {
	Call(ctx context.Context, agent, method, path, contentType string, body, into any) error
}

// The content types of bodies.
const (
	JSON       = "application/json"
	MergePatch = string(types.MergePatchType)
	Apply      = string(types.ApplyPatchType)
)

// ManagerAgent begins the user agent, and so the field manager, of controllers that a kube-controller-manager has in a
// stock cluster; the name of their service account follows.
const ManagerAgent = "kube-controller-manager/rowlock/system:serviceaccount:kube-system:"

// LongestBackoff limits the backoff of a key that fails repeatedly, unless a loop sets another limit.
const LongestBackoff = 5 * time.Minute

// Base is the common configuration of all controllers.
type Base struct {
	API      API
	Cache    *cache.Cache
	Log      *slog.Logger
	Clock    func() time.Time // nil: time.Now
	Moves    Moves            // of the clock
	Debounce time.Duration    // how long new changes are left alone
	Start    int64            // the store's revision when the server started; a list does not leave older objects alone
	Retry    time.Duration    // the first backoff; 0: 1 second
	Meter    *Meter           // nil: the work is not measured
}

// Now returns the time by the clock.
func (b *Base) Now() time.Time {
	if b.Clock == nil {
		return time.Now()
	}
	return b.Clock()
}

// Delete deletes an object if it still has the revision at which it was seen.
func (b *Base) Delete(ctx context.Context, agent, path string, seen *cache.Item) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new(strconv.FormatInt(seen.Revision, 10))}}
	return b.API.Call(ctx, agent, http.MethodDelete, path, JSON, options, nil)
}

// Key identifies a unit of work: an object, all objects of a kind in a namespace, or a task of the controller.
type Key struct{ Namespace, Name string }

// KeyOf returns the key of an object.
func KeyOf(item *cache.Item) Key { return Key{item.Namespace, item.Name} }

// Moves signals a move of the clock, as by tests, to goroutines that wait for a time: the next move closes the
// channel. Nil: the clock is never moved.
type Moves func() <-chan struct{}

// Next returns the channel. Call it before reading the clock, so that no move is missed.
func (m Moves) Next() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m()
}

// ErrRetry means that a key is not done yet, which is no failure and not logged.
var ErrRetry = errors.New("there is more to do")

// Superseded reports whether another client has changed, created or deleted the object first. The watch delivers that
// change. Joined errors, however deep they are wrapped, are superseded if each of them is.
func Superseded(err error) bool {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if several, ok := e.(interface{ Unwrap() []error }); ok {
			return !slices.ContainsFunc(several.Unwrap(), func(one error) bool { return !Superseded(one) })
		}
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// Current returns nil for an error that means that another client has changed or deleted the object, and otherwise err.
func Current(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Decode decodes an object, and reports whether it is there and can be read.
func Decode(item *cache.Item, into any) bool {
	return item != nil && item.Err() == nil && json.Unmarshal(item.JSON(), into) == nil
}

// Finalizers reads the finalizers of an object.
func Finalizers(item *cache.Item) (finalizers []string) {
	lookup(item, &finalizers, "metadata", "finalizers")
	return finalizers
}

// Text reads a string of an object, without decoding the rest; "": there is none.
func Text(item *cache.Item, path ...string) (text string) {
	lookup(item, &text, path...)
	return text
}

func lookup[T any](item *cache.Item, into *T, path ...string) {
	if item.Err() != nil {
		return
	}
	if value := scan.Lookup(item.Peek(), path...); value == nil || json.Unmarshal(value, into) != nil {
		*into = *new(T)
	}
}

// Authority is the authority of the API as PEM, for controllers that publish it.
type Authority struct {
	Read  func() ([]byte, error)
	Every time.Duration // how often it is read again; 0: a minute
	PEM   []byte        // the value when it was last read
}

// Begin implements Loop: it reads the certificate authority.
func (a *Authority) Begin(context.Context) (err error) {
	if a.PEM, err = a.Read(); err != nil {
		return fmt.Errorf("reading the authority of the API: %w", err)
	}
	return nil
}

// Resync implements Loop.
func (a *Authority) Resync() time.Duration { return cmp.Or(a.Every, time.Minute) }

// RemoteResources lists resources that aggregated servers serve; documents.Documents implements it.
type RemoteResources interface {
	// Resources lists them, and the versions whose resources are unknown.
	Resources() (list []documents.Resource, unknown []schema.GroupVersion)
	// Serves reports whether another server has a version, even if it cannot be reached.
	Serves(gv schema.GroupVersion) bool
	// OfKind finds the resource of a kind that another server has.
	OfKind(gvk schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool)
}
