package verbs

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/status"
)

func (c *Call) invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return status.Invalid(c.Resource.Release, schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// dryRun reads the parameter dryRun; an empty value means none.
func dryRun(q url.Values) []string {
	var out []string
	for _, v := range q["dryRun"] {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

func createOptions(c *Call) (*metav1.CreateOptions, error) {
	q := c.Info.Query
	o := &metav1.CreateOptions{DryRun: dryRun(q), FieldManager: q.Get("fieldManager"), FieldValidation: q.Get("fieldValidation")}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	return o, c.invalidOptions("CreateOptions", validation.ValidateCreateOptions(o))
}

func updateOptions(c *Call) (*metav1.UpdateOptions, error) {
	q := c.Info.Query
	o := &metav1.UpdateOptions{DryRun: dryRun(q), FieldManager: q.Get("fieldManager"), FieldValidation: q.Get("fieldValidation")}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
	return o, c.invalidOptions("UpdateOptions", validation.ValidateUpdateOptions(o))
}

func patchOptions(c *Call, patchType string) (*metav1.PatchOptions, error) {
	q := c.Info.Query
	o := &metav1.PatchOptions{
		DryRun: dryRun(q), FieldManager: q.Get("fieldManager"), FieldValidation: q.Get("fieldValidation"),
		Force: boolParam(q, "force"),
	}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PatchOptions"))
	return o, c.invalidOptions("PatchOptions", validation.ValidatePatchOptions(o, types.PatchType(patchType)))
}

// boolParam reads an optional boolean as a stock server does: true if it is present, unless it is "false" or "0".
func boolParam(q url.Values, name string) *bool {
	v, ok := q[name]
	if !ok || len(v) == 0 {
		return nil
	}
	return new(v[0] != "0" && !strings.EqualFold(v[0], "false"))
}

// deleteQuery reads the options of a delete without a body. The parameters uid and resourceVersion are its preconditions.
func deleteQuery(q url.Values) (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&q, o, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	o.DryRun = dryRun(q)
	return o, nil
}

// Manager returns the field manager of a request: its parameter fieldManager, or the first part of the user agent.
func (c *Call) Manager(parameter string) string {
	if parameter != "" {
		return parameter
	}
	agent, _, _ := strings.Cut(c.R.UserAgent(), "/")
	var clean strings.Builder
	for _, r := range agent {
		if !unicode.IsPrint(r) {
			continue
		}
		if clean.Len()+utf8.RuneLen(r) > validation.FieldManagerMaxLength {
			break
		}
		clean.WriteRune(r)
	}
	return clean.String()
}

// strictness reads fieldValidation, which has been validated.
func strictness(v string) codecs.Strictness {
	switch v {
	case "Ignore":
		return codecs.Ignore
	case "Strict":
		return codecs.Strict
	}
	return codecs.Warn
}
