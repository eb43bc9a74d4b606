package podspec_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/kinds/podspec"
)

func BenchmarkDefaultAndValidate(b *testing.B) {
	pod := decodePod(b, richPod)
	podspec.DefaultPodSpec(&pod.Spec)
	b.ReportAllocs()
	for b.Loop() {
		podspec.DefaultPodSpec(&pod.Spec)
		podspec.DropDisabled(&pod.Spec, nil)
		if errs := podspec.ValidatePod(pod, podspec.PodOptions(pod, nil)); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

func BenchmarkWarnings(b *testing.B) {
	pod := decodePod(b, richPod)
	podspec.DefaultPodSpec(&pod.Spec)
	b.ReportAllocs()
	for b.Loop() {
		podspec.PodWarnings(pod)
	}
}
