package release_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/yaml"
	"github.com/rowlock/rowlock/server/release"
	storagemigrationv1alpha1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
)

// TestFieldsOfLaterReleases: a field is unknown to each form in the releases before the one that it came with, the
// own and the standard way.
func TestFieldsOfLaterReleases(t *testing.T) {
	const text = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"hostnameOverride":"h","containers":[{"name":"c","image":"i","lifecycle":{"stopSignal":"SIGUSR1"}}],"odd":1}}`
	for v, want := range map[release.Version][]string{
		release.V132: {`unknown field "spec.hostnameOverride"`, `unknown field "spec.containers[0].lifecycle.stopSignal"`, `unknown field "spec.odd"`},
		release.V133: {`unknown field "spec.hostnameOverride"`, `unknown field "spec.odd"`},
		release.V134: {`unknown field "spec.odd"`},
	} {
		for _, standard := range []bool{false, true} {
			j := json.New(json.Settings{View: v.View(), Standard: standard})
			for _, codec := range []codecs.Codec{j, yaml.Codec{JSON: j}} {
				pod := &corev1.Pod{}
				problems, err := codec.Decode([]byte(text), pod, codecs.Strict)
				slices.Sort(problems)
				if err != nil || !slices.Equal(problems, slices.Sorted(slices.Values(want))) {
					t.Errorf("%v, standard %t, %s: %q, %v, want %q", v, standard, codec.MediaType(), problems, err, want)
				}
				if pod.Spec.HostnameOverride != nil && len(want) > 1 || pod.Spec.Containers[0].Lifecycle.StopSignal != nil && len(want) > 2 {
					t.Errorf("%v, standard %t: what is unknown was read: %+v", v, standard, pod.Spec)
				}
			}
			override, signal := "h", corev1.SIGUSR1
			whole := &corev1.Pod{Spec: corev1.PodSpec{HostnameOverride: &override, Containers: []corev1.Container{{Name: "c", Lifecycle: &corev1.Lifecycle{StopSignal: &signal}}}}}
			whole.Kind, whole.APIVersion = "Pod", "v1"
			p := protobuf.Codec{JSON: j}
			message, err := p.Encode(nil, whole)
			if err != nil {
				t.Fatal(err)
			}
			read := &corev1.Pod{}
			if _, err := p.Decode(message, read, codecs.Ignore); err != nil || (read.Spec.HostnameOverride == nil) != (len(want) > 1) || (read.Spec.Containers[0].Lifecycle.StopSignal == nil) != (len(want) > 2) {
				t.Errorf("%v: a message is read as %+v, %v", v, read.Spec, err)
			}
		}
	}
}

// TestFieldsStoredForLaterVersions: clients of releases that serve the older version do not see a field that is stored in it
// for the later version.
func TestFieldsStoredForLaterVersions(t *testing.T) {
	const text = `{"kind":"StorageVersionMigration","apiVersion":"storagemigration.k8s.io/v1alpha1","status":{"conditions":[{"type":"Running","status":"True","observedGeneration":3}]}}`
	for v, known := range map[release.Version]bool{release.V132: false, release.V134: false, release.V135: true, release.V136: true} {
		for _, standard := range []bool{false, true} {
			m := &storagemigrationv1alpha1.StorageVersionMigration{}
			problems, err := json.New(json.Settings{View: v.View(), Standard: standard}).Decode([]byte(text), m, codecs.Strict)
			if err != nil || (len(problems) == 0) != known || (m.Status.Conditions[0].ObservedGeneration == 3) != known {
				t.Errorf("%v, standard %t: %q, %v, %+v", v, standard, problems, err, m.Status)
			}
		}
	}
}

// TestEmptyTimes: an empty creationTimestamp is null in release 1.32, and left out from then on.
func TestEmptyTimes(t *testing.T) {
	for v, want := range map[release.Version]int{release.V132: 2, release.V133: 0, release.V134: 0, release.V136: 0} {
		for _, standard := range []bool{false, true} {
			text, err := json.New(json.Settings{View: v.View(), Standard: standard}).Encode(nil, &appsv1.Deployment{})
			if got := strings.Count(string(text), `"creationTimestamp":null`); err != nil || got != want {
				t.Errorf("%v, standard %t: %d of %d in %s, %v", v, standard, got, want, text, err)
			}
		}
	}
}
