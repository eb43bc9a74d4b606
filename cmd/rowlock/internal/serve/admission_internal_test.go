package serve

import (
	"testing"
)

func TestAdmissionFlags(t *testing.T) {
	o := &admissionOptions{only: []string{"NamespaceLifecycle"}}
	a, err := o.build()
	if err != nil || len(a.Enable) != 1 || len(a.Disable) < 20 {
		t.Errorf("%+v %v", a, err)
	}
	for _, bad := range []admissionOptions{
		{only: []string{"NamespaceLifecycle"}, enable: []string{"LimitRanger"}}, {only: []string{"No"}}, {enable: []string{"No"}}, {config: "nowhere"},
	} {
		if _, err := bad.build(); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
