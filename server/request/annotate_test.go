package request_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
)

// noted records annotations that were to change.
type noted []string

func (n *noted) Kept(annotation string)      { *n = append(*n, annotation) }
func (*noted) RequestObject(runtime.Object)  {}
func (*noted) WantsRequest() bool            { return false }
func (*noted) RequestPatch([]byte)           {}
func (*noted) ResponseStatus(*metav1.Status) {}
func (*noted) Shows(*authx.Attributes)       {}

// TestAnnotate: the first value of an audit annotation stays, and another one is reported.
func TestAnnotate(t *testing.T) {
	s, audited := request.NewScope(http.Header{}, time.Time{}), &noted{}
	s.Annotate("a", "nowhere")
	s.Audit = audited
	for _, value := range []string{"", "", "second", "third"} {
		s.Annotate("a", value)
	}
	s.Annotate("b", "other")
	if got, ok := s.Annotations["a"]; !ok || got != "" || s.Annotations["b"] != "other" || !slices.Equal(*audited, []string{"a", "a"}) {
		t.Errorf("%q, reported %q", s.Annotations, *audited)
	}
}
