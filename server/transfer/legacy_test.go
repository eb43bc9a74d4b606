package transfer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2beta2 "k8s.io/api/autoscaling/v2"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1beta1 "k8s.io/api/discovery/v1beta1"
	flowcontrolv1beta2 "k8s.io/api/flowcontrol/v1beta2"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// TestOldVersions: objects that have not been written since an upgrade are of versions that are no longer
// served, and arrive in the stored one.
func TestOldVersions(t *testing.T) {
	one := intstr.FromInt32(1)
	budget := encode(t, &policyv1beta1.PodDisruptionBudget{ObjectMeta: meta("a", "x"), Spec: policyv1beta1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}, "policy/v1beta1", "PodDisruptionBudget")
	scaler := encode(t, &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: meta("a", "x"), Spec: autoscalingv1.HorizontalPodAutoscalerSpec{MaxReplicas: 7}}, "autoscaling/v1", "HorizontalPodAutoscaler")
	const definition = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"ws.e.io","uid":"u"},"spec":{"group":"e.io","version":"v1","names":{"plural":"ws","singular":"w","kind":"W","listKind":"WList"},"scope":"Namespaced","preserveUnknownFields":false,"validation":{"openAPIV3Schema":{"type":"object"}},"selectableFields":[{"jsonPath":".spec.a"}],"versions":[{"name":"v1","served":true,"storage":true}],"conversion":{"strategy":"None"}},"status":{"conditions":[],"acceptedNames":{"plural":"ws","kind":"W"},"storedVersions":["v1"]}}` + "\n"
	for _, c := range []struct {
		key   string
		value []byte
		holds []string
	}{
		{"/registry/poddisruptionbudgets/a/x", budget, []string{`"apiVersion":"policy/v1"`, `"minAvailable":1`, `"matchLabels":{"a":"b"}`, `"uid":"u"`}},
		{"/registry/cronjobs/a/x", encode(t, &batchv1beta1.CronJob{ObjectMeta: meta("a", "x"), Spec: batchv1beta1.CronJobSpec{Schedule: "@daily", ConcurrencyPolicy: "Forbid"}}, "batch/v1beta1", "CronJob"), []string{`"apiVersion":"batch/v1"`, `"schedule":"@daily"`, `"concurrencyPolicy":"Forbid"`}},
		{"/registry/prioritylevelconfigurations/x", encode(t, &flowcontrolv1beta2.PriorityLevelConfiguration{ObjectMeta: meta("", "x"), Spec: flowcontrolv1beta2.PriorityLevelConfigurationSpec{Type: "Limited", Limited: &flowcontrolv1beta2.LimitedPriorityLevelConfiguration{AssuredConcurrencyShares: 7, LimitResponse: flowcontrolv1beta2.LimitResponse{Type: "Reject"}}}}, "flowcontrol.apiserver.k8s.io/v1beta2", "PriorityLevelConfiguration"), []string{`"nominalConcurrencyShares":7`, `"apiVersion":"flowcontrol.apiserver.k8s.io/v1"`}},
		{"/registry/prioritylevelconfigurations/x", encode(t, &flowcontrolv1beta3.PriorityLevelConfiguration{ObjectMeta: meta("", "x"), Spec: flowcontrolv1beta3.PriorityLevelConfigurationSpec{Type: "Limited", Limited: &flowcontrolv1beta3.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: 9, LimitResponse: flowcontrolv1beta3.LimitResponse{Type: "Reject"}}}}, "flowcontrol.apiserver.k8s.io/v1beta3", "PriorityLevelConfiguration"), []string{`"nominalConcurrencyShares":9`}},
		{"/registry/flowschemas/x", encode(t, &flowcontrolv1beta3.FlowSchema{ObjectMeta: meta("", "x"), Spec: flowcontrolv1beta3.FlowSchemaSpec{MatchingPrecedence: 7, PriorityLevelConfiguration: flowcontrolv1beta3.PriorityLevelConfigurationReference{Name: "p"}}}, "flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema"), []string{`"matchingPrecedence":7`, `"priorityLevelConfiguration":{"name":"p"}`}},
		{"/registry/endpointslices/a/x", encode(t, &discoveryv1beta1.EndpointSlice{ObjectMeta: meta("a", "x"), AddressType: "IPv4", Endpoints: []discoveryv1beta1.Endpoint{{Addresses: []string{"10.1.2.3"}, Topology: map[string]string{"topology.kubernetes.io/zone": "z"}}}}, "discovery.k8s.io/v1beta1", "EndpointSlice"), []string{`"zone":"z"`, `"addresses":["10.1.2.3"]`}},
		{"/registry/ingress/a/x", encode(t, &networkingv1beta1.Ingress{ObjectMeta: meta("a", "x"), Spec: networkingv1beta1.IngressSpec{Backend: &networkingv1beta1.IngressBackend{ServiceName: "s", ServicePort: intstr.FromString("http")}}}, "networking.k8s.io/v1beta1", "Ingress"), []string{`"defaultBackend":{"service":{"name":"s","port":{"name":"http"}}}`}},
		{"/registry/horizontalpodautoscalers/a/x", encode(t, &autoscalingv2beta2.HorizontalPodAutoscaler{ObjectMeta: meta("a", "x"), Spec: autoscalingv2beta2.HorizontalPodAutoscalerSpec{MaxReplicas: 6}}, "autoscaling/v2beta2", "HorizontalPodAutoscaler"), []string{`"apiVersion":"autoscaling/v2"`, `"maxReplicas":6`}},
		{"/registry/horizontalpodautoscalers/a/x", scaler, []string{`"apiVersion":"autoscaling/v2"`, `"maxReplicas":7`}},
		{"/registry/apiextensions.k8s.io/customresourcedefinitions/ws.e.io", []byte(definition), []string{`"apiVersion":"apiextensions.k8s.io/v1"`, `"schema":{"openAPIV3Schema":{"type":"object"}}`, `"storedVersions":["v1"]`, `"uid":"u"`, `"selectableFields":[{"jsonPath":".spec.a"}]`}},
	} {
		out := take(t, reader(), foreign.Entry{Key: c.key, Value: c.value, ModRevision: 1})
		for _, part := range c.holds {
			if out.Disposition != transfer.Taken || !strings.Contains(string(out.Row.Value), part) {
				t.Errorf("%s: %v, no %s in %s", c.key, out.Err, part, out.Row.Value)
			}
		}
		if strings.Contains(string(out.Row.Value), "preserveUnknownFields") || len(out.Unknown) > 0 {
			t.Errorf("lost %q of %s", out.Unknown, out.Row.Value)
		}
	}
}

// TestLostFields: fields that a newer server wrote, and no type here has, are named: once for each field,
// with their number, and in versions of the past too.
func TestLostFields(t *testing.T) {
	added := []byte{0x9a, 0x06, 3, 'n', 'e', 'w'} // field 99
	grown := func(value []byte) []byte {          // with that field in the message, whose length follows the tag 0x12
		const head = 4
		at := head
		for value[at] != 0x12 {
			at += 2 + int(value[at+1])
		}
		n, size := int(value[at+1]), 2
		if n >= 0x80 {
			n, size = n&0x7f|int(value[at+2])<<7, 3
		}
		message := slices.Concat(value[at+size:at+size+n], added)
		return slices.Concat(value[:at], []byte{0x12, byte(len(message)&0x7f | 0x80), byte(len(message) >> 7)}, message, value[at+size+n:])
	}
	r := reader()
	for i := range 3 {
		cm := grown(encode(t, &corev1.ConfigMap{ObjectMeta: meta("a", fmt.Sprint("x", i)), Data: map[string]string{"k": strings.Repeat("v", 200*i)}}, "v1", "ConfigMap"))
		if out := take(t, r, foreign.Entry{Key: fmt.Sprint("/registry/configmaps/a/x", i), Value: cm, ModRevision: 1}); out.Disposition != transfer.Taken || !slices.Equal(out.Unknown, []string{`unknown field "99"`}) {
			t.Fatalf("%+v", out)
		}
	}
	budget := grown(encode(t, &policyv1beta1.PodDisruptionBudget{ObjectMeta: meta("a", "x")}, "policy/v1beta1", "PodDisruptionBudget"))
	take(t, r, foreign.Entry{Key: "/registry/poddisruptionbudgets/a/x", Value: budget, ModRevision: 1})
	take(t, r, foreign.Entry{Key: "/registry/configmaps/a/y", Value: []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"y","namespace":"a"},"secrets":"hunter2"}`), ModRevision: 1})
	want := []string{
		`configmaps: unknown field "99": it is left out of 3 objects (the first: "/registry/configmaps/a/x0"), as the type has no such field in this release`,
		`configmaps: unknown field "secrets": it is left out of 1 objects (the first: "/registry/configmaps/a/y"), as the type has no such field in this release`,
		`poddisruptionbudgets.policy: unknown field "99": it is left out of 1 objects (the first: "/registry/poddisruptionbudgets/a/x"), as the type has no such field in this release`,
	}
	if got := r.Report(); !slices.Equal(got.Warnings, want) || got.Objects != 5 {
		t.Errorf("%q, %+v", got.Warnings, got.Problems)
	}
}

// TestReasonsQuoteNothing: the reasons for an unreadable value contain only names and numbers of it.
func TestReasonsQuoteNothing(t *testing.T) {
	const head = `{"kind":%q,"apiVersion":%q,"metadata":{"name":"x","namespace":"a"%s}%s}`
	for _, c := range []struct{ key, kind, version, metadata, rest string }{
		{"configmaps", "ConfigMap", "v1", `,"creationTimestamp":"hunter2"`, ""},
		{"e.io/ws", "W", "e.io/v1", `,"deletionTimestamp":"hunter2"`, ""},
		{"e.io/ws", "W", "e.io/v1", `,"managedFields":[{"time":"hunter2"}]`, ""},
		{"leases", "Lease", "coordination.k8s.io/v1", "", `,"spec":{"renewTime":"hunter2"}`},
		{"leases", "Lease", "coordination.k8s.io/v1", "", `,"spec":{"leaseDurationSeconds":"hunter2"}`},
		{"pods", "Pod", "v1", "", `,"spec":{"overhead":{"cpu":"hunter2"}}`},
		{"secrets", "Secret", "v1", "", `,"data":{"a":"hunter2!"}`},
		{"configmaps", "ConfigMap", "v1", "", `,"data":hunter2`},
	} {
		out := take(t, reader(), foreign.Entry{Key: "/registry/" + c.key + "/a/x", Value: fmt.Appendf(nil, head, c.kind, c.version, c.metadata, c.rest), ModRevision: 1})
		if out.Disposition != transfer.Damaged || strings.Contains(out.Err.Error(), "hunter2") {
			t.Errorf("%+v: fate %d, %v", c, out.Disposition, out.Err)
		}
	}
}
