package core

import (
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestJSONOfSecrets: a value that must be a JSON object is checked with the errors of a stock server, and without memory for what it
// contains.
func TestJSONOfSecrets(t *testing.T) {
	for value, want := range map[string]string{
		`{"auths":{"a":{"auth":"b"}}}`: "",
		`{}`:                           "",
		`null`:                         "",
		``:                             "unexpected end of JSON input",
		`{"a":}`:                       "invalid character '}' looking for beginning of value",
		`[1]`:                          "json: cannot unmarshal array into Go value of type map[string]interface {}",
		`"a"`:                          "json: cannot unmarshal string into Go value of type map[string]interface {}",
		`1`:                            "json: cannot unmarshal number into Go value of type map[string]interface {}",
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "n"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(value)}}
		got := ""
		if errs := validateSecret(s); len(errs) > 0 {
			got = errs[0].Detail
		}
		if got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
	s := &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"a":[` + strings.Repeat("{},", 300_000) + `{}]}`)}}
	if n := allocated(func() {
		if errs := validateSecret(s); len(errs) > 0 {
			t.Error(errs)
		}
	}); n > 1<<20 {
		t.Errorf("%d bytes are allocated", n)
	}
}

// TestLongSourceRanges: an annotation of many invalid networks has as many errors as an answer contains, and one that is too long for
// any object is not read.
func TestLongSourceRanges(t *testing.T) {
	for _, length := range []int{100_000, 1 << 20} {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: strings.Repeat(",", length)}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
		}
		var errs field.ErrorList
		if n := allocated(func() { errs = serviceRules{}.validateSourceRanges(s, nil) }); n > 16<<20 || len(errs) > rules.MaxErrors+1 || length == 100_000 && len(errs) < rules.MaxErrors {
			t.Errorf("%d networks: %d errors, %d bytes are allocated", length, len(errs), n)
		}
	}
}

// TestLongNodeAnnotations: annotations that are too long for any object are not decoded.
func TestLongNodeAnnotations(t *testing.T) {
	for _, annotation := range []string{taintsAnnotation, avoidPodsAnnotation} {
		text := "[" + strings.Repeat("{},", 400_000) + "{}]"
		if annotation == avoidPodsAnnotation {
			text = `{"preferAvoidPods":` + text + "}"
		}
		if n := allocated(func() {
			validateNodeAnnotations(map[string]string{annotation: text}, field.NewPath("metadata", "annotations"))
		}); n > 1<<20 {
			t.Errorf("%s: %d bytes are allocated", annotation, n)
		}
	}
}
