package filters

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/tracing"
)

// Authenticate authenticates the user. It answers 401 to a bad credential, or to none if anonymous requests are not allowed.
// It removes credentials from the request. Each request that passes has a user with a name. measure takes each result, and how
// long it took; it may be nil.
func Authenticate(a authx.Authenticator, measure MeasureAuthentication, log *slog.Logger, fail Fail) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if authenticated(a, measure, log, fail, w, r) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// MeasureAuthentication takes the result of an authenticator.
type MeasureAuthentication func(who *authx.Authenticated, mine bool, err error, took time.Duration)

// authenticate calls an authenticator, in a span of the request's trace.
func authenticate(a authx.Authenticator, measure MeasureAuthentication, r *http.Request) (*authx.Authenticated, bool, error) {
	ctx, span := tracing.Start(r.Context(), "authentication")
	defer span.End()
	if span.On() {
		r = r.WithContext(ctx) // headers are the same in both
	}
	began := time.Now()
	who, mine, err := a.Authenticate(r)
	request.From(ctx).Took(request.Authentication, began)
	if measure != nil {
		measure(who, mine, err, time.Since(began))
	}
	if err != nil {
		span.Fail()
	}
	return who, mine, err
}

// authenticated reports whether the user is authenticated. If not, it answers 401, or 429 if the authenticator has no room.
func authenticated(a authx.Authenticator, measure MeasureAuthentication, log *slog.Logger, fail Fail, w http.ResponseWriter, r *http.Request) bool {
	who, mine, err := authenticate(a, measure, r)
	r.Header.Del("Authorization")
	if errors.Is(err, authx.ErrBusy) {
		log.Debug("authentication refused: too many at once", "error", err, "from", r.RemoteAddr)
		request.From(r.Context()).Terminated = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "1")
		fail(w, r, apierrors.NewTooManyRequests(authx.ErrBusy.Error(), 1))
		return false
	}
	if mine && err == nil && !who.HasName() {
		// No authenticator may return this: later filters would take an empty name for a user.
		log.Error("an authenticator returned a user without a name", "from", r.RemoteAddr)
		who, err = nil, authx.ErrNameless
	}
	if r.ProtoMajor == 2 && (err != nil || !mine || who.Identity.Name == authx.Anonymous) {
		// An unauthenticated client must not keep a connection, on which further requests would be cheap.
		w.Header().Set("Connection", "close")
	}
	if err != nil || !mine {
		if err != nil {
			log.Debug("authentication failed", "error", err, "from", r.RemoteAddr)
		}
		fail(w, r, unauthorized())
		return false
	}
	s := request.From(r.Context())
	s.User = who.Identity
	if who.StillValid != nil && s.Info != nil && LongRunning(s.Info) {
		s.Stand = append(s.Stand, who.StillValid)
	}
	return true
}

func unauthorized() error {
	e := apierrors.NewUnauthorized("Unauthorized")
	e.ErrStatus.Details = nil
	return e
}
