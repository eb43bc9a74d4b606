package namespaces

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/aggregator/documents"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// Limits on the cost of emptying a namespace at other servers, which every client that deletes namespaces
// causes.
const (
	remoteConcurrency = 4 // namespaces
	remoteTimeout     = 10 * time.Second
	remotePage        = 500  // objects that are listed
	remoteQuote       = 1024 // bytes of a server's error in a condition
)

// remoteContents empties namespaces at other servers. A server that stalls keeps a goroutine, and not the namespaces that have
// nothing there.
type remoteContents struct {
	reconcile.Base
	servers reconcile.RemoteResources // nil: there are none
	done    func(key reconcile.Key)   // is called when there is a result
	places  chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	results map[reconcile.Key]*found // nil while it is under way
}

// start resets the result.
func (e *remoteContents) start(base reconcile.Base, servers reconcile.RemoteResources, done func(key reconcile.Key)) {
	e.Base, e.servers, e.done = base, servers, done
	e.places, e.results = make(chan struct{}, remoteConcurrency), map[reconcile.Key]*found{}
}

// empty starts emptying a namespace at other servers, and returns nil until that has ended; the next call then returns the
// result.
func (e *remoteContents) empty(ctx context.Context, key reconcile.Key) *found {
	if e.servers == nil {
		return &found{}
	}
	list, unknown := e.servers.Resources()
	list = slices.DeleteFunc(list, func(r documents.Resource) bool {
		return !r.Namespaced || !slices.Contains(r.Verbs, "delete")
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	result, begun := e.results[key]
	switch {
	case begun && result == nil:
		return nil
	case begun:
		delete(e.results, key)
		result.unknown = unknown
		return result
	case len(list) == 0:
		return &found{unknown: unknown}
	}
	e.results[key] = nil
	e.running.Go(func() {
		result := &found{failures: []error{ctx.Err()}}
		select {
		case e.places <- struct{}{}:
			result = e.all(ctx, key.Namespace, list)
			<-e.places
		case <-ctx.Done():
		}
		e.mu.Lock()
		e.results[key] = result
		e.mu.Unlock()
		e.done(key)
	})
	return nil
}

// forget drops the result of a deleted namespace.
func (e *remoteContents) forget(key reconcile.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.results[key] != nil {
		delete(e.results, key)
	}
}

// all deletes the objects of a namespace at other servers. It skips the rest of a group that has not answered in time.
func (e *remoteContents) all(ctx context.Context, namespace string, list []documents.Resource) *found {
	f, late := &found{}, map[string]bool{}
	for i := range list {
		r := &list[i]
		if late[r.Group] {
			continue
		}
		held := map[string]int{}
		count, err := e.one(ctx, namespace, r, held)
		if err != nil {
			late[r.Group] = errors.Is(err, context.DeadlineExceeded)
			f.failures = append(f.failures, err)
		}
		f.left(r.Resource, r.Group, count, held)
	}
	return f
}

// page is the part of a list that all reads.
type page struct {
	Metadata metav1.ListMeta `json:"metadata"`
	Items    []struct {
		Metadata struct {
			Name       string   `json:"name"`
			Finalizers []string `json:"finalizers"`
		} `json:"metadata"`
	} `json:"items"`
}

// one deletes the objects of one resource, and returns the number of remaining ones.
func (e *remoteContents) one(ctx context.Context, namespace string, r *documents.Resource, held map[string]int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	path := "/apis/" + r.Group + "/" + r.Version + "/namespaces/" + namespace + "/" + url.PathEscape(r.Resource)
	call := func(method, path string, into any) error {
		return e.quoted(ctx, r, e.API.Call(ctx, agent, method, path, "", nil, into))
	}
	list := func() (p page, err error) {
		if slices.Contains(r.Verbs, "list") {
			err = call(http.MethodGet, path+fmt.Sprintf("?limit=%d", remotePage), &p)
		}
		return p, err
	}
	if slices.Contains(r.Verbs, "deletecollection") {
		if err := call(http.MethodDelete, path+"?propagationPolicy=Background", nil); err != nil {
			return 0, err
		}
	} else {
		p, err := list()
		if err != nil {
			return 0, err
		}
		for i := range p.Items {
			if err := call(http.MethodDelete, path+"/"+url.PathEscape(p.Items[i].Metadata.Name)+"?propagationPolicy=Background", nil); err != nil {
				return len(p.Items) - i, err
			}
		}
	}
	p, err := list()
	count := len(p.Items)
	if p.Metadata.RemainingItemCount != nil {
		count += int(*p.Metadata.RemainingItemCount)
	}
	for i := range p.Items {
		for _, f := range p.Items[i].Metadata.Finalizers {
			held[f]++
		}
	}
	return count, err
}

// quoted returns an error of another server, shortened for a condition. NotFound is not an error.
func (e *remoteContents) quoted(ctx context.Context, r *documents.Resource, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s.%s: %w", r.Resource, r.Group, ctx.Err())
	}
	text := strings.ToValidUTF8(err.Error(), "")
	return fmt.Errorf("%s.%s: %s", r.Resource, r.Group, strings.ToValidUTF8(text[:min(len(text), remoteQuote)], ""))
}
