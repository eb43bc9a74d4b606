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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
)

// What asking other servers about owners may cost, which whoever writes objects that refer to
// them causes.
const (
	asksAtOnce  = 4
	askTimeout  = 10 * time.Second // for all owners of an object together
	mostAnswers = 1000             // that are remembered
	answerLasts = 30 * time.Second // that an owner is there; that it is gone, lasts
	firstSilent = time.Second      // how long nothing is asked of a version that did not answer: longer each time
	longSilent  = time.Minute
	// longestAsked is how many bytes the name and the UID of an owner may have together: any
	// text passes for them in a reference, and no server has such an object.
	longestAsked = 1024
)

// elsewhere asks other servers about owners, and remembers what they said.
type elsewhere struct {
	*state
	places chan struct{}

	mu      sync.Mutex // guards what follows
	answers map[asked]answer
	oldest  []asked // in the order in which they came
	silent  map[schema.GroupVersion]silence
}

// asked is an owner at another server.
type asked struct {
	what            schema.GroupVersionResource
	namespace, name string
	uid             string
}

type answer struct {
	owner owner
	at    time.Time
}

type silence struct {
	until time.Time
	rest  time.Duration
}

func newElsewhere(s *state) *elsewhere {
	return &elsewhere{state: s, places: make(chan struct{}, asksAtOnce), answers: map[asked]answer{}, silent: map[schema.GroupVersion]silence{}}
}

// judge is that of state for owners that are not in memory, of which another server may know.
func (e *elsewhere) judge(ctx context.Context, s *subject, r *cache.Owner) (owner, error) {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil || e.Elsewhere == nil {
		return solid, errUnknown
	}
	what, namespaced, ok := e.Elsewhere.OfKind(gv.WithKind(r.Kind))
	if !ok {
		return solid, errUnknown
	}
	if len(r.Name)+len(r.UID) > longestAsked {
		return solid, errUnknown
	}
	// What is remembered must not keep the whole text of the dependent.
	what.Group, what.Version = strings.Clone(what.Group), strings.Clone(what.Version)
	q := asked{what: what, name: strings.Clone(r.Name), uid: strings.Clone(r.UID)}
	if namespaced {
		if q.namespace = s.item.Namespace; q.namespace == "" {
			return solid, errUnreachable
		}
	}
	if known, ok := e.remembered(q, e.Clock()); ok {
		return known, nil
	}
	if e.isSilent(gv, e.Clock()) {
		return solid, errUnknown
	}
	select {
	case e.places <- struct{}{}:
		defer func() { <-e.places }()
	default:
		return solid, errUnknown // it is looked at again
	}
	said, err := e.ask(ctx, q)
	e.remember(q, said, err, e.Clock())
	if err != nil {
		return solid, errUnknown
	}
	return said, nil
}

// ask asks another server about an owner.
func (e *elsewhere) ask(ctx context.Context, q asked) (owner, error) {
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

// isAbsent says whether a server has said that it has no object of a name. That it has no
// such resource is another matter: its APIService may have changed just now.
func isAbsent(err error, name string) bool {
	var st *apierrors.StatusError
	return apierrors.IsNotFound(err) && errors.As(err, &st) && st.ErrStatus.Details != nil && st.ErrStatus.Details.Name == name
}

// remembered is what was said about an owner, if that counts still. Of a server that is silent
// nothing is asked for a while.
func (e *elsewhere) remembered(q asked, now time.Time) (owner, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a, ok := e.answers[q]
	return a.owner, ok && (a.owner == dangling || now.Sub(a.at) < answerLasts)
}

func (e *elsewhere) isSilent(gv schema.GroupVersion, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.silent[gv].until)
}

func (e *elsewhere) remember(q asked, said owner, err error, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gv := q.what.GroupVersion()
	if err != nil {
		rest := min(max(2*e.silent[gv].rest, firstSilent), longSilent)
		e.silent[gv] = silence{now.Add(rest), rest}
		return
	}
	delete(e.silent, gv)
	if _, ok := e.answers[q]; !ok {
		e.oldest = append(e.oldest, q)
	}
	e.answers[q] = answer{said, now}
	if len(e.oldest) > mostAnswers {
		delete(e.answers, e.oldest[0])
		e.oldest = e.oldest[1:]
	}
}
