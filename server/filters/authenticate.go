package filters

import (
	"log/slog"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
)

// Authenticate finds out who is asking. A bad credential, or none where anonymous
// requests are not welcome, answers 401. Credentials leave the request here.
func Authenticate(a authx.Authenticator, log *slog.Logger, fail Fail) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if authenticated(a, log, fail, w, r) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// authenticated says whether it is known who asks, and answers 401 otherwise.
func authenticated(a authx.Authenticator, log *slog.Logger, fail Fail, w http.ResponseWriter, r *http.Request) bool {
	who, mine, err := a.Authenticate(r)
	r.Header.Del("Authorization")
	if r.ProtoMajor == 2 && (err != nil || !mine || who.Identity.Name == authx.Anonymous) {
		// Strangers do not keep a connection on which requests are cheap to them.
		w.Header().Set("Connection", "close")
	}
	if err != nil || !mine {
		if err != nil {
			log.Debug("authentication failed", "error", err, "from", r.RemoteAddr)
		}
		fail(w, r, unauthorized())
		return false
	}
	request.From(r.Context()).User = who.Identity
	return true
}

func unauthorized() error {
	e := apierrors.NewUnauthorized("Unauthorized")
	e.ErrStatus.Details = nil
	return e
}
