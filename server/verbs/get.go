package verbs

import (
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// get answers with one object.
func (h *Handler) get(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	q := c.Info.Query
	if err := noExport(q); err != nil {
		return err
	}
	version := ""
	if v := q["resourceVersion"]; len(v) > 0 {
		version = v[0]
	}
	it, err := h.Objects.Read(c.R.Context(), c.Scope.Permit, c.place(c.Info.Name), version)
	if err != nil {
		return err
	}
	return h.Answers.Item(&c.Request, form, http.StatusOK, it)
}

// noExport refuses a parameter that was removed long ago.
func noExport(q url.Values) error {
	if b := boolParam(q, "export"); b != nil && *b {
		return apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	return nil
}
