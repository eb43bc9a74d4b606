package podspec_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/kinds/podspec"
)

func BenchmarkDefaultAndValidate(b *testing.B) {
	pod := decodePod(b, richPod)
	defaults.DefaultPodSpec(&pod.Spec)
	b.ReportAllocs()
	for b.Loop() {
		defaults.DefaultPodSpec(&pod.Spec)
		defaults.DropDisabled(&pod.Spec, nil)
		if errs := podspec.ValidatePod(pod, defaults.PodOptions(pod, nil)); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

func BenchmarkWarnings(b *testing.B) {
	pod := decodePod(b, richPod)
	defaults.DefaultPodSpec(&pod.Spec)
	b.ReportAllocs()
	for b.Loop() {
		defaults.PodWarnings(pod)
	}
}
