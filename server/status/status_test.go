package status_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// Every kind of error is wrapped twice and must still be known.
func TestOf(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	key := sqlstore.Key{Resource: "deployments.apps", Namespace: "a", Name: "d"}
	for _, c := range []struct {
		err    error
		code   int32
		reason string
		text   string
		retry  int32
	}{
		{&sqlstore.NotFoundError{Key: key}, 404, "NotFound", `deployments.apps "d" not found`, 0},
		{&sqlstore.ExistsError{Key: key}, 409, "AlreadyExists", `deployments.apps "d" already exists`, 0},
		{&sqlstore.ConflictError{Key: key, Expect: 1}, 409, "Conflict", `Operation cannot be fulfilled on deployments.apps "d": the object has been modified; please apply your changes to the latest version and try again`, 0},
		{&sqlstore.CompactedError{Revision: 3, Floor: 9}, 410, "Expired", "too old resource version: 3 (9)", 0},
		{&sqlstore.FutureError{Revision: 9, Head: 3}, 504, "Timeout", "Timeout: Too large resource version: 9, current: 3", 1},
		{&sqlstore.CorruptError{Key: key, Reason: "secret detail"}, 500, "InternalError", "", 0},
		{sqlstore.ErrTooLarge, 413, "RequestEntityTooLarge", "", 0},
		{sqlstore.ErrUncertain, 504, "Timeout", "", 1},
		{sqlstore.ErrFull, 503, "ServiceUnavailable", "", 1},
		{sqlstore.ErrReadOnly, 503, "ServiceUnavailable", "", 1},
		{sqlstore.ErrRefused, 503, "ServiceUnavailable", "", 1},
		{&sqlstore.CorruptError{Reason: "the database is damaged"}, 503, "ServiceUnavailable", "", 1},
		{sqlstore.ErrUnavailable, 503, "ServiceUnavailable", "", 1},
		{sqlstore.ErrBusy, 503, "ServiceUnavailable", "", 1},
		{sqlstore.ErrClosed, 503, "ServiceUnavailable", "", 1},
		{&http.MaxBytesError{Limit: 5}, 413, "RequestEntityTooLarge", "Request entity too large: limit is 5", 0},
		{context.DeadlineExceeded, 504, "Timeout", "Timeout: request did not complete within the allotted timeout", 0},
		{apierrors.NewBadRequest("no"), 400, "BadRequest", "no", 0},
		{status.Plain("as it is"), 500, "", "as it is", 0},
		{status.NoResource(), 404, "NotFound", "the server could not find the requested resource", 0},
		{status.NotAllowed(), 405, "MethodNotAllowed", "the server does not allow this method on the requested resource", 0},
	} {
		st, unknown := status.Of(fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", c.err)), deployments)
		if unknown {
			t.Errorf("%v: unknown", c.err)
		}
		if st.Kind != "Status" || st.APIVersion != "v1" || st.Status != "Failure" {
			t.Errorf("%v: not a whole Status: %+v", c.err, st)
		}
		if st.Code != c.code || string(st.Reason) != c.reason {
			t.Errorf("%v: %d %q, want %d %q", c.err, st.Code, st.Reason, c.code, c.reason)
		}
		if c.text != "" && st.Message != c.text {
			t.Errorf("%v: message %q, want %q", c.err, st.Message, c.text)
		}
		var retry int32
		if st.Details != nil {
			retry = st.Details.RetryAfterSeconds
		}
		if retry != c.retry {
			t.Errorf("%v: retry after %d, want %d", c.err, retry, c.retry)
		}
		if strings.Contains(st.Message, "secret detail") {
			t.Errorf("%v: leaks: %q", c.err, st.Message)
		}
	}
}

// TestCodeOfOthers: a webhook or a kubelet chose the code, with which this server could not answer.
func TestCodeOfOthers(t *testing.T) {
	for code, want := range map[int32]int32{-1: 500, 0: 500, 42: 500, 101: 500, 199: 500, 200: 200, 403: 403, 600: 600, 999: 999, 1000: 500, 70_000: 500} {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: "no"}}
		st, unknown := status.Of(err, schema.GroupResource{})
		if st.Code != want || st.Message != "no" || unknown {
			t.Errorf("code %d became %d: %+v", code, st.Code, st)
		}
	}
}

func TestOfUnknown(t *testing.T) {
	st, unknown := status.Of(errors.New("password=hunter2"), schema.GroupResource{})
	if !unknown || st.Code != 500 || st.Reason != "InternalError" || strings.Contains(st.Message, "hunter2") {
		t.Errorf("%v %+v", unknown, st)
	}
}
