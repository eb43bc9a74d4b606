package json_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
)

// TestMistypedFields: errors about values of a wrong type name the fields of the JSON, without the embedded structs of Go.
func TestMistypedFields(t *testing.T) {
	for in, want := range map[string]string{
		`{"kind":5}`:                              "json: cannot unmarshal number into Go struct field Pod.kind of type string",
		`{"metadata":{"name":5}}`:                 "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
		`{"spec":{"volumes":[{"emptyDir":"x"}]}}`: "json: cannot unmarshal string into Go struct field Volume.spec.volumes.emptyDir of type v1.EmptyDirVolumeSource",
		`{"spec":{"containers":[{"livenessProbe":{"exec":true}}]}}`: "json: cannot unmarshal bool into Go struct field Probe.spec.containers.livenessProbe.exec of type v1.ExecAction",
	} {
		for _, s := range []codecs.Strictness{codecs.Ignore, codecs.Warn} {
			if _, err := (json.Codec{}).Decode([]byte(in), &corev1.Pod{}, s); err == nil || err.Error() != want {
				t.Errorf("%s:\n got %v\nwant %s", in, err, want)
			}
		}
	}
}
