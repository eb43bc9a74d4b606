package garbage

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
	validation "k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	"github.com/rowlock/rowlock/server/cache"
)

// Limits of the requests about owners to other servers, which clients cause that write objects with such owners.
const (
	maxRequests       = 4                // at once
	requestTimeout    = 10 * time.Second // for all owners of an object together
	maxAnswers        = 1000             // that are remembered
	answerLasts       = 30 * time.Second // for an existing owner; the absence of an owner is cached without a limit
	firstUnresponsive = time.Second      // the backoff for a version that did not answer; it doubles up to longUnresponsive
	longUnresponsive  = time.Minute
	// longestQuery limits the bytes of the name and the UID of an owner together: a reference may have any text, but no
	// object has longer ones.
	longestQuery = 1024
)

// remoteOwners requests owners from other servers, and caches the answers.
type remoteOwners struct {
	*state
	places  chan struct{}
	answers *lru.Cache // of answer, by query

	mu           sync.Mutex // guards unresponsive
	unresponsive map[schema.GroupVersion]unresponsiveUntil
}

// query identifies an owner at another server.
type query struct {
	what            schema.GroupVersionResource
	namespace, name string
	uid             string
}

type answer struct {
	owner owner
	at    time.Time
}

type unresponsiveUntil struct {
	until time.Time
	rest  time.Duration
}

func newRemoteOwners(s *state) *remoteOwners {
	return &remoteOwners{state: s, places: make(chan struct{}, maxRequests), answers: lru.New(maxAnswers), unresponsive: map[schema.GroupVersion]unresponsiveUntil{}}
}

// resolveOwner is state.resolveOwner for owners that are not in memory and that another server may have.
func (e *remoteOwners) resolveOwner(ctx context.Context, s *subject, r *cache.Owner) (owner, error) {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil || e.Remote == nil {
		return solid, errUnknown
	}
	what, namespaced, ok := e.Remote.OfKind(gv.WithKind(r.Kind))
	if !ok {
		return solid, errUnknown
	}
	if len(r.Name)+len(r.UID) > longestQuery || len(validation.IsValidPathSegmentName(r.Name)) > 0 {
		return solid, errUnknown // no object has such a name
	}
	// A cached answer must not keep the whole text of the dependent in memory.
	what.Group, what.Version = strings.Clone(what.Group), strings.Clone(what.Version)
	q := query{what: what, name: strings.Clone(r.Name), uid: strings.Clone(r.UID)}
	if namespaced {
		if q.namespace = s.item.Namespace; q.namespace == "" {
			return solid, errUnreachable
		}
	}
	if known, ok := e.remembered(q, e.Clock()); ok {
		return known, nil
	}
	if e.isUnresponsive(gv, e.Clock()) {
		return solid, errUnknown
	}
	select {
	case e.places <- struct{}{}:
		defer func() { <-e.places }()
	default:
		return solid, errUnknown // the object is parked and judged again
	}
	found, err := e.request(ctx, q)
	e.remember(q, found, err, e.Clock())
	if err != nil {
		return solid, errUnknown
	}
	return found, nil
}

// request gets an owner from another server.
func (e *remoteOwners) request(ctx context.Context, q query) (owner, error) {
	path := "/apis/" + q.what.Group + "/" + q.what.Version
	if q.namespace != "" {
		path += "/namespaces/" + q.namespace
	}
	var there metav1.PartialObjectMetadata
	err := e.API.Call(ctx, agent, http.MethodGet, path+"/"+url.PathEscape(q.what.Resource)+"/"+url.PathEscape(q.name), "", nil, &there)
	switch {
	case isAbsent(err, q.name):
		return dangling, nil
	case err != nil:
		return solid, err
	case there.UID == "":
		return solid, fmt.Errorf("%s %s has no UID", q.what.Resource, q.name)
	case string(there.UID) != q.uid:
		return dangling, nil
	case there.DeletionTimestamp != nil && slices.Contains(there.Finalizers, metav1.FinalizerDeleteDependents):
		return waiting, nil
	}
	return solid, nil
}

// isAbsent reports whether a server answered that it has no object of a name. A server that answers that it lacks the
// resource does not count: its APIService may just have changed.
func isAbsent(err error, name string) bool {
	var st *apierrors.StatusError
	return apierrors.IsNotFound(err) && errors.As(err, &st) && st.ErrStatus.Details != nil && st.ErrStatus.Details.Name == name
}

// isRefusal reports whether a server answered that it does not accept the name in a request.
func isRefusal(err error) bool {
	var st apierrors.APIStatus
	return errors.As(err, &st) && (st.Status().Code == http.StatusBadRequest || st.Status().Code == http.StatusUnprocessableEntity)
}

// remembered returns the cached answer about an owner, if it has not expired.
func (e *remoteOwners) remembered(q query, now time.Time) (owner, bool) {
	cached, ok := e.answers.Get(q)
	if !ok {
		return solid, false
	}
	a := cached.(answer)
	return a.owner, a.owner == dangling || now.Sub(a.at) < answerLasts
}

func (e *remoteOwners) isUnresponsive(gv schema.GroupVersion, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.unresponsive[gv].until)
}

func (e *remoteOwners) remember(q query, found owner, err error, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gv := q.what.GroupVersion()
	if isRefusal(err) {
		return // or a client could silence a version with the name of an owner
	}
	if err != nil {
		rest := min(max(2*e.unresponsive[gv].rest, firstUnresponsive), longUnresponsive)
		e.unresponsive[gv] = unresponsiveUntil{now.Add(rest), rest}
		return
	}
	delete(e.unresponsive, gv)
	e.answers.Add(q, answer{found, now})
}
