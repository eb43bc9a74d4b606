package serve

import (
	"testing"

	"github.com/rowlock/rowlock/server/release"
)

func TestAdmissionFlags(t *testing.T) {
	o := &admissionOptions{only: []string{"NamespaceLifecycle"}}
	a, err := o.build(release.V132)
	if err != nil || len(a.Enable) != 1 || len(a.Disable) < 20 {
		t.Errorf("%+v %v", a, err)
	}
	for _, bad := range []admissionOptions{
		{only: []string{"NamespaceLifecycle"}, enable: []string{"LimitRanger"}}, {only: []string{"No"}}, {enable: []string{"No"}}, {disable: []string{"JobValidation"}}, {only: []string{"JobValidation"}}, {config: "nowhere"},
	} {
		if _, err := bad.build(release.V132); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	if _, err := (&admissionOptions{disable: []string{"JobValidation"}}).build(release.V133); err != nil {
		t.Error(err)
	}
}
