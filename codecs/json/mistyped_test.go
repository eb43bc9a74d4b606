package json_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/view"
)

// TestMistypedFields: errors about values of a wrong type name the fields of the JSON, and the embedded structs of Go
// only if the view wants them.
func TestMistypedFields(t *testing.T) {
	never := func(reflect.Type, string) bool { return false }
	plain, named := json.New(json.Settings{View: view.New(never, never, false)}), json.New(json.Settings{View: view.New(never, never, true)})
	for in, want := range map[string][2]string{
		`{"kind":5}`:                                                {"number into Go struct field Pod.kind of type string", "number into Go struct field Pod.TypeMeta.kind of type string"},
		`{"metadata":{"name":5}}`:                                   {"number into Go struct field ObjectMeta.metadata.name of type string", ""},
		`{"metadata":{"creationTimestamp":5}}`:                      {"number into Go struct field ObjectMeta.metadata.creationTimestamp of type string", ""},
		`{"spec":{"volumes":[{"emptyDir":"x"}]}}`:                   {"string into Go struct field Volume.spec.volumes.emptyDir of type v1.EmptyDirVolumeSource", "string into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource"},
		`{"spec":{"containers":[{"livenessProbe":{"exec":true}}]}}`: {"bool into Go struct field Probe.spec.containers.livenessProbe.exec of type v1.ExecAction", "bool into Go struct field Probe.spec.containers.livenessProbe.ProbeHandler.exec of type v1.ExecAction"},
	} {
		if want[1] == "" {
			want[1] = want[0]
		}
		for _, s := range []codecs.Strictness{codecs.Ignore, codecs.Warn} {
			for i, codec := range []json.Codec{plain, named, {}} {
				want := "json: cannot unmarshal " + want[min(i, 1)]
				if _, err := codec.Decode([]byte(in), &corev1.Pod{}, s); err == nil || err.Error() != want {
					t.Errorf("%s, codec %d:\n got %v\nwant %s", in, i, err, want)
				}
			}
		}
	}
}

// TestMistypedFieldsOfOtherVersions: errors name a type as the version of the object has it, which may be another one than that of
// the Go type.
func TestMistypedFieldsOfOtherVersions(t *testing.T) {
	for in, want := range map[string]string{
		`{"apiVersion":"resource.k8s.io/v1beta2","spec":{"devices":5}}`:                          "number into Go struct field ResourceClaimSpec.spec.devices of type v1beta2.DeviceClaim",
		`{"apiVersion":"resource.k8s.io/v1beta2","spec":{"devices":{"requests":{}}}}`:            "object into Go struct field DeviceClaim.spec.devices.requests of type []v1beta2.DeviceRequest",
		`{"apiVersion":"resource.k8s.io/v1","spec":{"devices":5}}`:                               "number into Go struct field ResourceClaimSpec.spec.devices of type v1.DeviceClaim",
		`{"apiVersion":"resource.k8s.io/v1beta2","metadata":5}`:                                  "number into Go struct field ResourceClaim.metadata of type v1.ObjectMeta",
		`{"apiVersion":"resource.k8s.io/v1beta2","spec":{"devices":{"requests":[{"name":[]}]}}}`: "array into Go struct field DeviceRequest.spec.devices.requests.name of type string",
		`{"spec":{"devices":5}}`: "number into Go struct field ResourceClaimSpec.spec.devices of type v1.DeviceClaim",
	} {
		_, err := (json.Codec{}).Decode([]byte(in), &resourcev1.ResourceClaim{}, codecs.Warn)
		if want := "json: cannot unmarshal " + want; err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", in, err, want)
		}
	}
}
