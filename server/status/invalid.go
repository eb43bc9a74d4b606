package status

import (
	"fmt"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/release"
)

// maxWords limits the bytes of errors in the answer about one object. Some errors repeat the invalid value, and a
// long list can have one for every item.
const maxWords = 256 << 10

// maxText bounds the message of every Status, and the texts of its causes together, wherever they come from:
// three times the bound of Invalid.
const maxText = 3 * maxWords

// maxCauses bounds how many there are.
const maxCauses = 10_000

// limit truncates a Status to the size that clients can use.
func limit(s *metav1.Status) {
	s.Message = clip(s.Message, maxText)
	if s.Details == nil || len(s.Details.Causes) == 0 {
		return
	}
	words := 0
	for i, c := range s.Details.Causes {
		if words += len(c.Message) + len(c.Field); words <= maxText && i < maxCauses {
			continue
		}
		details := *s.Details // the error keeps its own
		details.Causes = append(details.Causes[:i:i], more(len(details.Causes)-i))
		s.Details = &details
		return
	}
}

// Brief returns valid UTF-8 of about that many bytes of a text, and "..." for the rest.
func Brief(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.ToValidUTF8(text, "")
}

// clip returns the beginning of a text, and how much follows.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	at := most
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return fmt.Sprintf("%s ... and %d more bytes", text[:at], len(text)-at)
}

// more returns the cause that represents n others.
func more(n int) metav1.StatusCause {
	return metav1.StatusCause{Type: metav1.CauseType(field.ErrorTypeTooMany), Message: fmt.Sprintf("%d more errors", n)}
}

// Invalid returns the answer to an object with errors, 422: all of them as the release words them, as far as they fit.
func Invalid(v release.Version, kind schema.GroupKind, name string, errs field.ErrorList) *apierrors.StatusError {
	causes, texts, seen, words := make([]metav1.StatusCause, 0, min(len(errs), 100)), make([]string, 0, 1), map[string]bool{}, 0
	for i, err := range errs {
		if words > maxWords || i == maxCauses {
			rest := more(len(errs) - i)
			causes, texts = append(causes, rest), append(texts, rest.Message)
			break
		}
		body := clip(Body(v, err), maxWords)
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
