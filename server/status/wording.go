package status

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/release"
)

// wording is a text in errors of the libraries that changed with a release. Texts in the validation of a kind already
// depend on the release, and no wording applies to them.
type wording struct {
	change release.Change
	kind   field.ErrorType
	field  func() *regexp.Regexp // of the errors that have it; nil: all
	now    func() *regexp.Regexp
	before string // replaces the matches of now
}

// lazy compiles an expression when it is first needed: most servers word few errors.
func lazy(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var wordings = []wording{
	{release.LabelsInBytes, field.ErrorTypeInvalid, nil, lazy(`(must be no more than \d+) bytes\b`), "$1 characters"},
	{release.LabelKeys, field.ErrorTypeInvalid, nil, lazy(`\ba valid label key (must consist of )`), "a qualified name $1"},
	{release.UnderscoresShown, field.ErrorTypeInvalid, nil, lazy(regexp.QuoteMeta(`'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*'`)), `'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'`},
	{release.EscapedFields, field.ErrorTypeInvalid, nil, lazy(`(expecting \{.*), ESC_IDENTIFIER`), "$1"},
	{release.ShortRequired, field.ErrorTypeRequired, lazy(`onditions\[\d+\]\.(lastTransitionTime|reason)$`), lazy(`^$`), "must be set"},
	{release.ShortRequired, field.ErrorTypeRequired, lazy(`^status\[\d+\]\.reason$`), lazy(`^$`), "reason cannot be empty"},
	{release.ShortRequired, field.ErrorTypeRequired, lazy(`^status\[\d+\]\.message$`), lazy(`^$`), "message cannot be empty"},
	{release.ShortRequired, field.ErrorTypeRequired, lazy(`[cC]lientConfig\.service\.name$`), lazy(`^$`), "service name is required"},
	{release.ShortRequired, field.ErrorTypeRequired, lazy(`[cC]lientConfig\.service\.namespace$`), lazy(`^$`), "service namespace is required"},
	{release.ShortRequired, field.ErrorTypeInvalid, lazy(`\bownerReferences\.kind$`), lazy(`^must not be empty$`), "kind must not be empty"},
	{release.ShortRequired, field.ErrorTypeInvalid, lazy(`\bownerReferences\.name$`), lazy(`^must not be empty$`), "name must not be empty"},
	{release.ShortRequired, field.ErrorTypeInvalid, lazy(`\bownerReferences\.uid$`), lazy(`^must not be empty$`), "uid must not be empty"},
	{release.ShortRequired, field.ErrorTypeRequired, lazy(`^spec\.versions\[\d+\]\.schema\.openAPIV3Schema$`), lazy(`^$`), "schemas are required"},
	{release.ShortRequired, field.ErrorTypeInvalid, lazy(`(\bx-kubernetes-|\bspec\.)validations\[\d+\]\.message$`), lazy(`^must (be non-empty if specified|not contain line breaks)$`), "message $0"},
	{release.ShortRequired, field.ErrorTypeInvalid, lazy(`\bx-kubernetes-validations\[\d+\]\.fieldPath$`), lazy(`^must (be non-empty if specified|be a valid path|not contain line breaks)$`), "fieldPath $0"},
	{release.ShortRequired, field.ErrorTypeInvalid, lazy(`^spec\.variables\[\d+\]\.name$`), lazy(`^must be a valid CEL identifier$`), "name is not a valid CEL identifier"},
	{release.ShortRequired, field.ErrorTypeInvalid, lazy(`\bselectableFields$`), lazy("^(may only be set when )`?([^`]+)`?"), "selectableFields $1$2"},
	{release.ShortRequired, field.ErrorTypeInvalid, lazy(`^status\.storedVersions\[\d+\]$`), lazy(`^missing from spec\.versions; .*$`), "must appear in spec.versions"},
	{release.Singulars, field.ErrorTypeTooLong, nil, lazy(`^(may not be more than 1 byte)$`), "${1}s"},
	{release.Singulars, field.ErrorTypeTooMany, nil, lazy(`^(must have at most 1 item)$`), "${1}s"},
}

// Body returns an error as a release words it, without the name of the field.
func Body(v release.Version, err *field.Error) string {
	detail := err.Detail
	for i := range wordings {
		if w := &wordings[i]; w.kind == err.Type && !v.Has(w.change) && (w.field == nil || w.field().MatchString(err.Field)) {
			detail = w.now().ReplaceAllString(detail, w.before)
		}
	}
	if v.Has(release.ValuesInJSON) {
		worded := *err
		worded.Detail = detail
		return worded.ErrorBody()
	}
	body := err.Type.String() + valueInGo(err)
	if detail != "" {
		body += ": " + detail
	}
	return body
}

// Selector returns a release's message for an invalid selector.
func Selector(v release.Version, err error) string {
	text := err.Error()
	for i := range wordings {
		if w := &wordings[i]; w.kind == field.ErrorTypeInvalid && w.field == nil && !v.Has(w.change) {
			text = w.now().ReplaceAllString(text, w.before)
		}
	}
	if !v.Has(release.ValuesInJSON) {
		text = strings.Replace(text, "Invalid value: []:", "Invalid value: []string{}:", 1)
	}
	return text
}

// Text returns an error as a release words it.
func Text(v release.Version, err *field.Error) string { return err.Field + ": " + Body(v, err) }

// valueInGo returns the value that an error is about, in the syntax of Go.
func valueInGo(err *field.Error) string {
	value := err.BadValue
	switch err.Type {
	case field.ErrorTypeRequired, field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooShort, field.ErrorTypeInternal:
		return ""
	}
	if _, omitted := value.(field.OmitValueType); omitted {
		return ""
	}
	switch v := reflect.ValueOf(value); {
	case value == nil, v.Kind() == reflect.Pointer && v.IsNil():
		value = "null"
	case v.Kind() == reflect.Pointer:
		value = v.Elem().Interface()
	}
	switch v := value.(type) {
	case int64, int32, float64, float32, bool:
		return fmt.Sprintf(": %v", v)
	case string:
		return fmt.Sprintf(": %q", v)
	case fmt.Stringer:
		return ": " + v.String()
	}
	return fmt.Sprintf(": %#v", value)
}
