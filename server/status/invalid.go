package status

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mostWords is how many bytes of errors a client is told about one object. Some errors
// repeat the value that they are about, and a long list can have one for every item.
const mostWords = 256 << 10

// Invalid is the answer to an object with errors, 422: all of them, as far as they fit.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) *apierrors.StatusError {
	causes, texts, seen, words := make([]metav1.StatusCause, 0, min(len(errs), 100)), make([]string, 0, 1), map[string]bool{}, 0
	for i, err := range errs {
		if words > mostWords {
			more := fmt.Sprintf("%d more errors", len(errs)-i)
			causes, texts = append(causes, metav1.StatusCause{Type: metav1.CauseType(field.ErrorTypeTooMany), Message: more}), append(texts, more)
			break
		}
		body := err.ErrorBody()
		words += len(body) + len(err.Field)
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseType(err.Type), Message: body, Field: err.Field})
		if text := err.Field + ": " + body; !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	out := apierrors.NewInvalid(kind, name, nil)
	out.ErrStatus.Details.Causes = causes
	switch len(texts) {
	case 0:
	case 1:
		out.ErrStatus.Message += ": " + texts[0]
	default:
		out.ErrStatus.Message += ": [" + strings.Join(texts, ", ") + "]"
	}
	return out
}
