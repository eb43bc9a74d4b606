package json_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

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
