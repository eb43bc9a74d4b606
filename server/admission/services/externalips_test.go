package services_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/services"
	"github.com/rowlock/rowlock/server/kinds"
)

func TestDenyExternalIPs(t *testing.T) {
	of := func(ips ...string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{ExternalIPs: ips}}
	}
	const refused = `services "s" is forbidden: Use of external IPs is denied by admission control`
	for name, c := range map[string]struct {
		now, before *corev1.Service
		sub, want   string
	}{
		"none":     {of(), nil, "", "<nil>"},
		"new":      {of("1.2.3.4"), nil, "", refused},
		"one more": {of("1.2.3.4", "1.2.3.5"), of("1.2.3.4"), "", refused},
		"fewer":    {of("1.2.3.5"), of("1.2.3.4", "1.2.3.5"), "", "<nil>"},
		"status":   {of("1.2.3.4"), of(), "status", "<nil>"},
	} {
		a := &admission.Attributes{Operation: admission.Create, Resource: &kinds.Resource{Plural: "services"}, Subresource: c.sub, Object: c.now}
		if c.before != nil {
			a.Operation, a.Old = admission.Update, c.before
		}
		if err := (services.DenyExternalIPs{}).Validate(t.Context(), a); fmt.Sprint(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
