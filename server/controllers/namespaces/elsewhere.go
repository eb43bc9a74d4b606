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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/aggregator/documents"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// What emptying a namespace at other servers may cost. Whoever deletes namespaces causes it.
const (
	elsewhereAtOnce  = 4 // namespaces
	elsewhereTimeout = 10 * time.Second
	elsewherePage    = 500  // objects that are listed
	elsewhereQuote   = 1024 // bytes of what a server said, in a condition
)

// emptied is what emptying a namespace at other servers came to.
type emptied struct {
	unknown  []schema.GroupVersion // versions of which nobody can tell what they hold
	failures []error
	left     leftovers
}

// away are the namespaces that are being emptied at other servers. A server that stalls
// keeps a goroutine, and not the namespaces that have nothing there.
type away struct {
	mu      sync.Mutex
	results map[string]*emptied // by UID; nil while it is under way
	places  chan struct{}
}

// emptyElsewhere is what came of emptying a namespace at other servers since it was asked
// for last, or nil: that has begun, or is under way.
func (n *Controller) emptyElsewhere(ctx context.Context, key reconcile.Key) *emptied {
	if n.Elsewhere == nil {
		return &emptied{}
	}
	list, unknown := n.Elsewhere.Resources()
	list = slices.DeleteFunc(list, func(r documents.Resource) bool {
		return !r.Namespaced || !slices.Contains(r.Verbs, "delete")
	})
	a := &n.away
	a.mu.Lock()
	defer a.mu.Unlock()
	result, begun := a.results[key.Name]
	switch {
	case begun && result == nil:
		return nil
	case begun:
		delete(a.results, key.Name)
		result.unknown = unknown
		return result
	case len(list) == 0:
		return &emptied{unknown: unknown}
	}
	a.results[key.Name] = nil
	n.running.Go(func() {
		result := &emptied{failures: []error{ctx.Err()}}
		select {
		case a.places <- struct{}{}:
			result = n.emptyAll(ctx, key.Namespace, list)
			<-a.places
		case <-ctx.Done():
		}
		a.mu.Lock()
		a.results[key.Name] = result
		a.mu.Unlock()
		n.mu.Lock()
		if n.going[key] == nil {
			a.forget(key.Name)
		}
		n.mu.Unlock()
		n.loop.Queue.Plan(key, 0)
	})
	return nil
}

// forget drops the result of a namespace that is gone.
func (a *away) forget(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.results[uid] != nil {
		delete(a.results, uid)
	}
}

// emptyAll deletes what other servers hold in a namespace. Of a group that does not answer
// in time nothing more is asked.
func (n *Controller) emptyAll(ctx context.Context, namespace string, list []documents.Resource) *emptied {
	out, held, late := &emptied{}, map[string]int{}, map[string]bool{}
	for i := range list {
		r := &list[i]
		if late[r.Group] {
			continue
		}
		count, err := n.emptyOne(ctx, namespace, r, held)
		if err != nil {
			late[r.Group] = errors.Is(err, context.DeadlineExceeded)
			out.failures = append(out.failures, err)
		}
		if count > 0 {
			out.left.resources = append(out.left.resources, fmt.Sprintf("%s.%s has %d resource instances", r.Resource, r.Group, count))
		}
	}
	out.left.hold(held)
	return out
}

// page is what is read of a list.
type page struct {
	Metadata metav1.ListMeta `json:"metadata"`
	Items    []struct {
		Metadata struct {
			Name       string   `json:"name"`
			Finalizers []string `json:"finalizers"`
		} `json:"metadata"`
	} `json:"items"`
}

// emptyOne deletes the objects of one resource, and says how many are left.
func (n *Controller) emptyOne(ctx context.Context, namespace string, r *documents.Resource, held map[string]int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, elsewhereTimeout)
	defer cancel()
	path := "/apis/" + r.Group + "/" + r.Version + "/namespaces/" + namespace + "/" + url.PathEscape(r.Resource)
	call := func(method, path string, into any) error {
		return n.elsewhereError(ctx, r, n.API.Call(ctx, agent, method, path, "", nil, into))
	}
	list := func() (p page, err error) {
		if slices.Contains(r.Verbs, "list") {
			err = call(http.MethodGet, path+fmt.Sprintf("?limit=%d", elsewherePage), &p)
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

// elsewhereError is an error of another server, of which as much is kept as a condition can
// hold. What is gone is no error.
func (n *Controller) elsewhereError(ctx context.Context, r *documents.Resource, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s.%s: %w", r.Resource, r.Group, ctx.Err())
	}
	text := strings.ToValidUTF8(err.Error(), "")
	return fmt.Errorf("%s.%s: %s", r.Resource, r.Group, strings.ToValidUTF8(text[:min(len(text), elsewhereQuote)], ""))
}

// undiscovered says which groups cannot be emptied, as a stock controller does.
func undiscovered(unknown []schema.GroupVersion) string {
	var list []string
	for _, gv := range unknown {
		list = append(list, fmt.Sprintf("%s: stale GroupVersion discovery: %s", gv, gv))
	}
	slices.Sort(list)
	return fmt.Sprintf("Discovery failed for some groups, %d failing: unable to retrieve the complete list of server APIs: %s", len(list), strings.Join(list, ", "))
}
