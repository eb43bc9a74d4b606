package builtin_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// The rules of single cells that are easily got wrong.
func TestCells(t *testing.T) {
	hundred := resource.MustParse("100m")
	percent := int32(40)
	resourceMetric := func(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{
			Type:     autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: target},
		}
	}
	for name, tt := range map[string]struct {
		group, version, resource string
		obj                      kinds.Object
		column                   string
		want                     any
	}{
		"addresses of a load balancer are sorted, each once": {"", "v1", "services", &corev1.Service{
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"1.1.1.1"}},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
				{IP: "9.9.9.9"}, {Hostname: "lb.example.com"}, {IP: "2.2.2.2", Hostname: "unseen"}, {IP: "9.9.9.9"},
			}}},
		}, "External-IP", "2.2.2.2,9.9.9.9,lb.example.com,1.1.1.1"},
		"only what begins with limits and a dot is a limit": {"", "v1", "resourcequotas", &corev1.ResourceQuota{
			Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"limits.cpu": hundred, "limitsx.example.com/y": hundred}},
		}, "Limit", "limits.cpu: 0/100m"},
		"a selector of parameters is printed as its type": {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
			&admissionv1.ValidatingAdmissionPolicyBinding{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				ParamRef: &admissionv1.ParamRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
			}}, "ParamRef", "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}"},
		"parameters that are not named and not selected": {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
			&admissionv1.ValidatingAdmissionPolicyBinding{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{ParamRef: &admissionv1.ParamRef{}}},
			"ParamRef", "<unset>"},
		"a port without number and name": {"discovery.k8s.io", "v1", "endpointslices", &discoveryv1.EndpointSlice{
			Ports: []discoveryv1.EndpointPort{{Name: new(string)}},
		}, "Ports", "<unset>"},
		"a status in another unit than the target": {"autoscaling", "v2", "horizontalpodautoscalers", &autoscalingv2.HorizontalPodAutoscaler{
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: []autoscalingv2.MetricSpec{
				resourceMetric(autoscalingv2.MetricTarget{AverageValue: &hundred}),
				resourceMetric(autoscalingv2.MetricTarget{AverageUtilization: &percent}),
			}},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentMetrics: []autoscalingv2.MetricStatus{
				{Resource: &autoscalingv2.ResourceMetricStatus{Current: autoscalingv2.MetricValueStatus{AverageUtilization: &percent}}},
				{Resource: &autoscalingv2.ResourceMetricStatus{Current: autoscalingv2.MetricValueStatus{AverageValue: &hundred}}},
			}},
		}, "Targets", "cpu: <nil>/100m, cpu: <unknown>/40%"},
		"a job about to succeed is running": {"batch", "v1", "jobs", &batchv1.Job{Status: batchv1.JobStatus{
			Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}},
		}}, "Status", "Running"},
		"a service that is unavailable without a reason": {"apiregistration.k8s.io", "v1", "apiservices", &apiregistrationv1.APIService{
			Status: apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{
				{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionFalse},
			}},
		}, "Available", "False"},
		"a pod of which a container has completed, ready by a later condition": {"", "v1", "pods", &corev1.Pod{Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
				{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		}}, "Status", "Running"},
	} {
		t.Run(name, func(t *testing.T) {
			c := kinds.NewCatalogue(builtin.Resources()).Lookup(tt.group, tt.version, tt.resource).Columns
			cells := c.Cells(tt.obj, time.Now())
			for i := range c.Definitions {
				if c.Definitions[i].Name == tt.column {
					if diff := cmp.Diff(tt.want, cells[i]); diff != "" {
						t.Error(diff)
					}
					return
				}
			}
			t.Errorf("there is no column %s", tt.column)
		})
	}
}
