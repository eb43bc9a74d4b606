package podverbs

import (
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// query reads options from the parameters of a request, and keeps the first error.
type query struct {
	values url.Values
	err    error
}

func (q *query) text(name string) string { return q.values.Get(name) }

// flag returns true for a parameter without a value, false for "0" and "false".
func (q *query) flag(name string) bool {
	v, ok := q.values[name]
	if !ok || len(v) == 0 {
		return false
	}
	switch strings.ToLower(v[0]) {
	case "false", "0":
		return false
	}
	return true
}

func (q *query) number(name string) *int64 {
	v, ok := q.values[name]
	if !ok || len(v) == 0 {
		return nil
	}
	n, err := strconv.ParseInt(v[0], 10, 64)
	if err != nil {
		q.fail(err)
		return nil
	}
	return &n
}

func (q *query) time(name string) *metav1.Time {
	v, ok := q.values[name]
	if !ok || len(v) == 0 {
		return nil
	}
	t := &metav1.Time{}
	if err := t.UnmarshalQueryParameter(v[0]); err != nil {
		q.fail(err)
		return nil
	}
	return t
}

func (q *query) fail(err error) {
	if q.err == nil {
		q.err = apierrors.NewBadRequest(err.Error())
	}
}
