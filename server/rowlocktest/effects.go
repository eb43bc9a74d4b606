package rowlocktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/request"
)

// Effect is the effect of a fault on a request.
type Effect struct {
	name  string
	serve func(w http.ResponseWriter, r *http.Request, next http.Handler, removed <-chan struct{})
	call  func(ctx context.Context, removed <-chan struct{}) error // of a webhook; nil: none
}

// String returns the effect's name.
func (e Effect) String() string { return e.name }

// Conflict answers 409, as if another had written first. Nothing is done.
func Conflict() Effect {
	return fails("Conflict", func(what schema.GroupResource, name string) *apierrors.StatusError {
		return apierrors.NewConflict(what, name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	})
}

// Gone answers 410: the revision from which a client continues or watches is too old.
func Gone() Effect {
	return fails("Gone", func(schema.GroupResource, string) *apierrors.StatusError {
		return apierrors.NewResourceExpired("too old resource version")
	})
}

// TooManyRequests answers 429 with Retry-After, in seconds. Clients of client-go wait and try
// again by themselves, ten times.
func TooManyRequests(after time.Duration) Effect {
	return fails("TooManyRequests", func(schema.GroupResource, string) *apierrors.StatusError {
		return apierrors.NewTooManyRequests("too many requests, please try again later", int(after.Round(time.Second)/time.Second))
	})
}

// InternalError answers 500. Nothing is done.
func InternalError() Effect {
	return fails("InternalError", func(schema.GroupResource, string) *apierrors.StatusError {
		return apierrors.NewInternalError(errors.New("injected by a test"))
	})
}

// Unavailable answers 503. Nothing is done.
func Unavailable() Effect {
	return fails("Unavailable", func(schema.GroupResource, string) *apierrors.StatusError {
		return apierrors.NewServiceUnavailable("injected by a test")
	})
}

// Forbidden answers 403, whatever the roles.
func Forbidden() Effect {
	return fails("Forbidden", func(what schema.GroupResource, name string) *apierrors.StatusError {
		return apierrors.NewForbidden(what, name, errors.New("injected by a test"))
	})
}

// Timeout answers 504. Nothing is done.
func Timeout() Effect { return fails("Timeout", timedOut) }

// TimeoutAfter carries out the request, and answers 504 as if that had taken too long.
func TimeoutAfter() Effect {
	return Effect{name: "TimeoutAfter", serve: func(w http.ResponseWriter, r *http.Request, next http.Handler, _ <-chan struct{}) {
		next.ServeHTTP(&lost{header: http.Header{}}, r)
		answer(w, timedOut(resource(r)))
	}}
}

func timedOut(schema.GroupResource, string) *apierrors.StatusError {
	e := apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	return e
}

// LoseAnswer carries out the request, and closes the connection before the client gets an answer.
func LoseAnswer() Effect {
	return Effect{name: "LoseAnswer", serve: func(_ http.ResponseWriter, r *http.Request, next http.Handler, _ <-chan struct{}) {
		next.ServeHTTP(&lost{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	}}
}

// Refuse breaks the connection, and nothing is done. A webhook cannot be reached.
func Refuse() Effect {
	return Effect{
		name:  "Refuse",
		serve: func(http.ResponseWriter, *http.Request, http.Handler, <-chan struct{}) { panic(http.ErrAbortHandler) },
		call: func(context.Context, <-chan struct{}) error {
			return errors.New("connection refused (injected by a test)")
		},
	}
}

// Delay takes its time, by the real clock, before anything is done.
func Delay(d time.Duration) Effect {
	wait := func(ctx context.Context, removed <-chan struct{}) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-removed:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	return waits("Delay", wait)
}

// Hold waits until the rule is removed, the server ends, or the request has taken too long.
func Hold() Effect {
	return waits("Hold", func(ctx context.Context, removed <-chan struct{}) error {
		select {
		case <-removed:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
}

func waits(name string, wait func(ctx context.Context, removed <-chan struct{}) error) Effect {
	return Effect{name: name, call: wait, serve: func(w http.ResponseWriter, r *http.Request, next http.Handler, removed <-chan struct{}) {
		_ = wait(r.Context(), removed) // the next handler checks the context too
		next.ServeHTTP(w, r)
	}}
}

// Answer answers a request with a function of the test; next is the server's handler.
func Answer(name string, serve func(w http.ResponseWriter, r *http.Request, next http.Handler)) Effect {
	return Effect{name: name, serve: func(w http.ResponseWriter, r *http.Request, next http.Handler, _ <-chan struct{}) { serve(w, r, next) }}
}

// fails returns an effect that answers with an error.
func fails(name string, err func(what schema.GroupResource, name string) *apierrors.StatusError) Effect {
	return Effect{name: name, serve: func(w http.ResponseWriter, r *http.Request, _ http.Handler, _ <-chan struct{}) {
		answer(w, err(resource(r)))
	}}
}

// resource returns the resource of a request.
func resource(r *http.Request) (schema.GroupResource, string) {
	info := request.From(r.Context()).Info
	return schema.GroupResource{Group: info.Group, Resource: info.Resource}, nameOf(info, r)
}

// answer writes an error as servers do.
func answer(w http.ResponseWriter, err *apierrors.StatusError) {
	st := err.ErrStatus
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, encoding := json.Marshal(st)
	if encoding != nil {
		http.Error(w, fmt.Sprint(encoding), http.StatusInternalServerError)
		return
	}
	if st.Code == http.StatusTooManyRequests && st.Details != nil {
		w.Header().Set("Retry-After", strconv.Itoa(int(st.Details.RetryAfterSeconds)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(st.Code))
	_, _ = w.Write(body) // the client may have disconnected
}

// lost is an answer that is not delivered.
type lost struct{ header http.Header }

// Header implements http.ResponseWriter.
func (l *lost) Header() http.Header { return l.header }

// WriteHeader implements http.ResponseWriter.
func (*lost) WriteHeader(int) {}

// Write implements io.Writer.
func (*lost) Write(p []byte) (int, error) { return len(p), nil }

// Flush implements http.Flusher.
func (*lost) Flush() {}
