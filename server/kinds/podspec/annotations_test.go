package podspec_test

import (
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// TestHugePageSizes: the size in the name of a resource is read only if that is quick. What it costs is counted in allocated bytes.
func TestHugePageSizes(t *testing.T) {
	for size, want := range map[string]bool{"2Mi": true, "1e6": true, "3Mi": false, "1e-9": false, "1e-1000000": false, "1e1000000": false, strings.Repeat("1", 2000): false} {
		name := corev1.ResourceName("hugepages-" + size)
		limits := corev1.ResourceList{name: resource.MustParse("4Mi"), corev1.ResourceMemory: resource.MustParse("1Gi")}
		if size == "1e6" {
			limits[name] = resource.MustParse("4M")
		}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits}}}}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		errs := podspec.ValidatePod(pod, defaults.PodOptions(pod, nil))
		runtime.ReadMemStats(&after)
		divisible := true
		for _, err := range errs {
			divisible = divisible && !strings.Contains(err.Error(), "is not positive integer multiple of")
		}
		if divisible != want {
			t.Errorf("%.20s: %v", size, errs)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 256<<10 {
			t.Errorf("%.20s: %d bytes are allocated", size, n)
		}
	}
}

// TestManyErrors: a pod has as many errors as an answer contains, also where one text has a million.
func TestManyErrors(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		Quobyte: &corev1.QuobyteVolumeSource{Volume: "v", Registry: strings.Repeat(",", 1<<20)},
	}}}}}
	if n := len(podspec.ValidatePod(pod, defaults.PodOptions(pod, nil))); n < rules.MaxErrors || n > rules.MaxErrors+100 {
		t.Errorf("%d errors", n)
	}
}

// TestLongTolerationsAnnotation: an annotation that is too long for any object is not decoded, whatever memory it would take. That is
// counted in allocated bytes.
func TestLongTolerationsAnnotation(t *testing.T) {
	const key = "scheduler.alpha.kubernetes.io/tolerations"
	validate := func(text string) (errs field.ErrorList, allocated uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		errs = podspec.ValidatePodAnnotations(map[string]string{key: text}, &corev1.PodSpec{}, field.NewPath("metadata", "annotations"), podspec.Options{})
		runtime.ReadMemStats(&after)
		return errs, after.TotalAlloc - before.TotalAlloc
	}
	if errs, _ := validate("[1]"); len(errs) == 0 {
		t.Error("an invalid annotation is accepted")
	}
	if _, n := validate("[" + strings.Repeat("{},", 400_000) + "{}]"); n > 1<<20 {
		t.Errorf("%d bytes are allocated", n)
	}
}
