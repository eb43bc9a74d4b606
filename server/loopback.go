package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
)

// system is the identity of the server in calls to itself.
var system = &authx.Identity{Name: "system:apiserver", Groups: []string{authx.GroupMasters, authx.GroupAuthenticated}}

// asSystem authenticates calls in process.
func asSystem(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scope := request.From(r.Context())
		scope.User, scope.Inside = system, true
		next.ServeHTTP(w, r)
	})
}

// Call lets the server's own controllers use its API in process, as system:apiserver in system:masters; agent
// becomes the field manager. Such calls appear in metrics and in the audit log like all others. body and into
// are encoded and decoded as JSON; both may be nil. An error of the API is an *apierrors.StatusError.
func (s *Server) Call(ctx context.Context, agent, method, path, contentType string, body, into any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", s.cfg.Release.Agent(agent))
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", contentType)
	}
	w := &loopbackWriter{header: http.Header{}}
	r.RequestURI, r.RemoteAddr = path, "127.0.0.1:0"
	s.loopback.ServeHTTP(w, r)
	if w.over {
		return fmt.Errorf("%s %s: the answer has more than %d bytes", method, path, maxLoopback)
	}
	if w.code >= 300 {
		st := metav1.Status{}
		if err := json.Unmarshal(w.body.Bytes(), &st); err != nil || st.Code == 0 {
			text := w.body.Bytes()
			return fmt.Errorf("%s %s: code %d: %s", method, path, w.code, bytes.TrimSpace(text[:min(len(text), maxLoopbackQuote)]))
		}
		return &apierrors.StatusError{ErrStatus: st}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(w.body.Bytes(), into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// Limits of answers to calls in process, which may come from another server.
const (
	maxLoopback      = 16 << 20
	maxLoopbackQuote = 1024 // of an answer that is not a Status, in an error
)

var errLoopback = errors.New("the answer is too large")

type loopbackWriter struct {
	header http.Header
	code   int
	body   bytes.Buffer
	over   bool
}

func (w *loopbackWriter) Header() http.Header { return w.header }

func (w *loopbackWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
}

func (w *loopbackWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(p) > maxLoopback {
		w.over = true
		return 0, errLoopback
	}
	return w.body.Write(p)
}

// isReason reports whether err is an API error with one of the reasons.
func isReason(err error, reasons ...metav1.StatusReason) bool {
	st, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && slices.Contains(reasons, st.ErrStatus.Reason)
}
