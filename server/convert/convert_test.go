package convert_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/convert"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

func converter() *convert.Converter {
	return convert.New(builtin.Config{Feature: func(string) bool { return true }}.Resources())
}

func parse(t *testing.T, text string) convert.Object {
	t.Helper()
	var o convert.Object
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// at reads a dotted path.
func at(o any, path string) any {
	for part := range strings.SplitSeq(path, "|") {
		switch v := o.(type) {
		case convert.Object:
			o = v[part]
		case []any:
			i := 0
			for _, c := range part {
				i = i*10 + int(c-'0')
			}
			if i >= len(v) {
				return nil
			}
			o = v[i]
		default:
			return nil
		}
	}
	return o
}

// TestPastVersions: a manifest in a removed version becomes one in the served version, with the
// defaults of the old one; and back if the old version can express it.
func TestPastVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		to   string
		want map[string]any // by path; nil: not there
	}{
		"deployment of extensions": {
			in: `{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: web}, spec: {rollbackTo: {revision: 3}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}`,
			to: "apps/v1",
			want: map[string]any{
				"apiVersion": "apps/v1", "spec|selector|matchLabels|app": "web", "metadata|labels|app": "web", "spec|replicas": 1.0,
				"spec|strategy|rollingUpdate|maxSurge": 1.0, "spec|revisionHistoryLimit": 2147483647.0, "spec|progressDeadlineSeconds": 2147483647.0,
				"metadata|annotations|deprecated.deployment.rollback.to": "3", "spec|rollbackTo": nil, "spec|template|spec|restartPolicy": "Always",
			},
		},
		"deployment with a long past": {
			in: `{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: web}, spec: {rollbackTo: {revision: 12000000}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}`,
			to: "apps/v1", want: map[string]any{"metadata|annotations|deprecated.deployment.rollback.to": "12000000"},
		},
		"budget with a selector of no expressions": {
			in: `{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: none}, spec: {minAvailable: 1, selector: {matchExpressions: []}}}`,
			to: "policy/v1", want: map[string]any{"spec|selector|matchExpressions|0|operator": "Exists"},
		},
		"deployment of apps/v1beta1": {
			in: `{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: web, labels: {own: x}}, spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}`,
			want: map[string]any{
				"apiVersion": "apps/v1", "spec|selector|matchLabels|app": "web", "metadata|labels|app": nil, "spec|strategy|rollingUpdate|maxSurge": "25%", "spec|revisionHistoryLimit": 2.0,
			},
		},
		"deployment of apps/v1beta2": {
			in:   `{apiVersion: apps/v1beta2, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
			want: map[string]any{"apiVersion": "apps/v1", "spec|revisionHistoryLimit": 10.0, "spec|progressDeadlineSeconds": 600.0},
		},
		"deployment back": {
			in:   `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {deprecated.deployment.rollback.to: "3"}}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
			to:   "extensions/v1beta1",
			want: map[string]any{"apiVersion": "extensions/v1beta1", "spec|rollbackTo|revision": 3.0, "metadata|annotations|deprecated.deployment.rollback.to": nil},
		},
		"daemon set": {
			in:   `{apiVersion: extensions/v1beta1, kind: DaemonSet, metadata: {name: d}, spec: {templateGeneration: 5, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
			want: map[string]any{"apiVersion": "apps/v1", "spec|updateStrategy|type": "OnDelete", "metadata|annotations|deprecated.daemonset.template.generation": "5", "spec|templateGeneration": nil},
		},
		"stateful set": {
			in:   `{apiVersion: apps/v1beta1, kind: StatefulSet, metadata: {name: s}, spec: {serviceName: s, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
			want: map[string]any{"apiVersion": "apps/v1", "spec|updateStrategy|type": "OnDelete", "spec|selector|matchLabels|a": "b", "spec|podManagementPolicy": "OrderedReady"},
		},
		"ingress": {
			in: `{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {name: i}, spec: {backend: {serviceName: d, servicePort: 80}, rules: [{host: h, http: {paths: [{path: /a, backend: {serviceName: s, servicePort: http}}, {backend: {resource: {kind: K, name: nn}}}]}}]}}`,
			to: "networking.k8s.io/v1",
			want: map[string]any{
				"spec|defaultBackend|service|name": "d", "spec|defaultBackend|service|port|number": 80.0, "spec|backend": nil, "spec|rules|0|http|paths|0|pathType": "ImplementationSpecific",
				"spec|rules|0|http|paths|0|backend|service|port|name": "http", "spec|rules|0|http|paths|0|backend|serviceName": nil, "spec|rules|0|http|paths|1|backend|resource|kind": "K",
			},
		},
		"ingress back": {
			in:   `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {defaultBackend: {service: {name: d, port: {number: 80}}}, rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {name: http}}}}]}}]}}`,
			to:   "networking.k8s.io/v1beta1",
			want: map[string]any{"spec|backend|serviceName": "d", "spec|backend|servicePort": 80.0, "spec|rules|0|http|paths|0|backend|servicePort": "http", "spec|rules|0|http|paths|0|backend|service": nil},
		},
		"cron job": {
			in:   `{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: c}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`,
			want: map[string]any{"apiVersion": "batch/v1", "spec|concurrencyPolicy": "Allow", "spec|successfulJobsHistoryLimit": 3.0},
		},
		"budget for no pod": {
			in:   `{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 1, selector: {}}}`,
			want: map[string]any{"apiVersion": "policy/v1", "spec|selector|matchExpressions|0|operator": "Exists"},
		},
		"budget for every pod": {
			in:   `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 1, selector: {}}}`,
			to:   "policy/v1beta1",
			want: map[string]any{"apiVersion": "policy/v1beta1", "spec|selector|matchExpressions|0|operator": "DoesNotExist"},
		},
		"autoscaler of v2beta1": {
			in: `{apiVersion: autoscaling/v2beta1, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 3, scaleTargetRef: {kind: D, name: d}, metrics: [
  {type: Resource, resource: {name: cpu, targetAverageUtilization: 50}}, {type: Pods, pods: {metricName: q, targetAverageValue: "5"}},
  {type: Object, object: {target: {kind: S, name: s}, metricName: m, targetValue: "7"}}, {type: External, external: {metricName: e, targetAverageValue: "9"}}]}}`,
			to: "autoscaling/v2",
			want: map[string]any{
				"spec|metrics|0|resource|target|type": "Utilization", "spec|metrics|0|resource|target|averageUtilization": 50.0, "spec|metrics|1|pods|metric|name": "q",
				"spec|metrics|1|pods|target|averageValue": "5", "spec|metrics|2|object|describedObject|kind": "S", "spec|metrics|2|object|target|type": "Value",
				"spec|metrics|3|external|target|type": "AverageValue", "spec|minReplicas": 1.0,
			},
		},
		"autoscaler back": {
			in:   `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 3, scaleTargetRef: {kind: D, name: d}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`,
			to:   "autoscaling/v2beta1",
			want: map[string]any{"spec|metrics|0|resource|targetAverageUtilization": 50.0, "spec|metrics|0|resource|target": nil},
		},
		"autoscaler between served versions": {
			in:   `{apiVersion: autoscaling/v2beta2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 3, scaleTargetRef: {kind: D, name: d}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`,
			to:   "autoscaling/v1",
			want: map[string]any{"apiVersion": "autoscaling/v1", "spec|targetCPUUtilizationPercentage": 50.0},
		},
		"binding": {
			in:   `{apiVersion: rbac.authorization.k8s.io/v1alpha1, kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: User, name: ann}, {kind: User, name: "*"}, {kind: ServiceAccount, name: s, namespace: nn, apiVersion: v1}]}`,
			want: map[string]any{"roleRef|apiGroup": "rbac.authorization.k8s.io", "subjects|0|apiGroup": "rbac.authorization.k8s.io", "subjects|1|name": "system:authenticated", "subjects|2|apiGroup": nil, "subjects|2|apiVersion": nil},
		},
		"runtime class": {
			in:   `{apiVersion: node.k8s.io/v1alpha1, kind: RuntimeClass, metadata: {name: r}, spec: {runtimeHandler: h}}`,
			want: map[string]any{"handler": "h", "spec": nil},
		},
		"endpoints": {
			in:   `{apiVersion: discovery.k8s.io/v1beta1, kind: EndpointSlice, metadata: {name: e}, addressType: IPv4, endpoints: [{addresses: [1.2.3.4], topology: {kubernetes.io/hostname: nn, topology.kubernetes.io/zone: z, own: x}}]}`,
			want: map[string]any{"endpoints|0|nodeName": "nn", "endpoints|0|zone": "z", "endpoints|0|deprecatedTopology|own": "x", "endpoints|0|topology": nil},
		},
		"request of a certificate": {
			in:   `{apiVersion: certificates.k8s.io/v1beta1, kind: CertificateSigningRequest, metadata: {name: c}, spec: {request: YQ==}}`,
			want: map[string]any{"apiVersion": "certificates.k8s.io/v1", "spec|signerName": "kubernetes.io/legacy-unknown", "spec|usages|0": "digital signature"},
		},
		"webhook": {
			in:   `{apiVersion: admissionregistration.k8s.io/v1beta1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{name: a.b.c, clientConfig: {url: "https://x"}}]}`,
			want: map[string]any{"webhooks|0|failurePolicy": "Ignore", "webhooks|0|timeoutSeconds": 30.0, "webhooks|0|sideEffects": "Unknown", "webhooks|0|admissionReviewVersions|0": "v1beta1"},
		},
		"definition": {
			in: `{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: ws.e.io}, spec: {group: e.io, version: v1, names: {plural: ws, kind: W}, validation: {openAPIV3Schema: {type: object}},
  additionalPrinterColumns: [{name: a, type: string, JSONPath: .a}], selectableFields: [{jsonPath: .spec.a}], subresources: {status: {}}}}`,
			want: map[string]any{
				"spec|versions|0|name": "v1", "spec|versions|0|schema|openAPIV3Schema|type": "object", "spec|versions|0|additionalPrinterColumns|0|jsonPath": ".a",
				"spec|versions|0|selectableFields|0|jsonPath": ".spec.a", "spec|selectableFields": nil,
				"spec|preserveUnknownFields": true, "spec|validation": nil, "spec|version": nil, "spec|scope": "Namespaced",
			},
		},
		"definition back": {
			in: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ws.e.io}, spec: {group: e.io, scope: Cluster, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}},
  additionalPrinterColumns: [{name: a, type: string, jsonPath: .a}], selectableFields: [{jsonPath: .spec.a}]}]}}`,
			to:   "apiextensions.k8s.io/v1beta1",
			want: map[string]any{"spec|selectableFields|0|jsonPath": ".spec.a", "spec|version": "v1", "spec|validation|openAPIV3Schema|type": "object", "spec|additionalPrinterColumns|0|JSONPath": ".a"},
		},
		"priority level": {
			in:   `{apiVersion: flowcontrol.apiserver.k8s.io/v1beta2, kind: PriorityLevelConfiguration, metadata: {name: p}, spec: {type: Limited, limited: {assuredConcurrencyShares: 7, limitResponse: {type: Reject}}}}`,
			want: map[string]any{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "spec|limited|nominalConcurrencyShares": 7.0},
		},
		"another group's version": {
			in:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}`,
			to:   "apps/v1",
			want: map[string]any{"apiVersion": "v1", "data|a": "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := parse(t, tc.in)
			before, _ := json.Marshal(in)
			to, err := schema.ParseGroupVersion(tc.to)
			if err != nil {
				t.Fatal(err)
			}
			out, err := converter().Convert(t.Context(), in, to)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range tc.want {
				if got := at(out, path); got != want {
					if n, ok := got.(int64); !ok || float64(n) != want {
						t.Errorf("%s is %v (%T), want %v", path, got, got, want)
					}
				}
			}
			if after, _ := json.Marshal(in); string(after) != string(before) {
				t.Error("the manifest that was given has changed")
			}
		})
	}
}

// TestThereAndBack: an object that is converted to a removed version and back is unchanged.
func TestThereAndBack(t *testing.T) {
	for version, text := range map[string]string{
		"extensions/v1beta1":                   `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {ingressClassName: c, defaultBackend: {service: {name: d, port: {number: 80}}}, tls: [{hosts: [h], secretName: s}], rules: [{host: h, http: {paths: [{path: /, pathType: Exact, backend: {service: {name: s, port: {name: http}}}}]}}]}}`,
		"apps/v1beta1":                         `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, labels: {a: b}}, spec: {serviceName: s, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
		"apps/v1beta2":                         `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: s}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
		"policy/v1beta1":                       `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {maxUnavailable: 30%, selector: {matchLabels: {a: b}}}}`,
		"autoscaling/v2beta1":                  `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {minReplicas: 2, maxReplicas: 3, scaleTargetRef: {kind: D, name: d}, metrics: [{type: Object, object: {describedObject: {kind: S, name: s}, metric: {name: m}, target: {type: AverageValue, averageValue: "3"}}}, {type: ContainerResource, containerResource: {name: cpu, container: c, target: {type: AverageValue, averageValue: 1500m}}}]}}`,
		"rbac.authorization.k8s.io/v1alpha1":   `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: nn}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: Group, name: g, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: s, namespace: nn}]}`,
		"discovery.k8s.io/v1beta1":             `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: e}, addressType: IPv4, ports: [], endpoints: [{addresses: [1.2.3.4], nodeName: nn, zone: z, conditions: {ready: true}}]}`,
		"node.k8s.io/v1alpha1":                 `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: r}, handler: h, overhead: {podFixed: {cpu: 10m}}}`,
		"flowcontrol.apiserver.k8s.io/v1beta1": `{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: p}, spec: {type: Limited, limited: {nominalConcurrencyShares: 7, limitResponse: {type: Reject}}}}`,
	} {
		t.Run(version, func(t *testing.T) {
			c := converter()
			first, err := c.Convert(t.Context(), parse(t, text), schema.GroupVersion{})
			if err != nil {
				t.Fatal(err)
			}
			gv, err := schema.ParseGroupVersion(version)
			if err != nil {
				t.Fatal(err)
			}
			past, err := c.Convert(t.Context(), first, gv)
			if err != nil {
				t.Fatal(err)
			}
			if past["apiVersion"] != version {
				t.Errorf("%v is no %s", past["apiVersion"], version)
			}
			again, err := c.Convert(t.Context(), past, schema.GroupVersion{})
			if err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(first)
			b, _ := json.Marshal(again)
			if d := cmp.Diff(string(a), string(b)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWhatCannotBeConverted(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"no kind":                 {`{apiVersion: v1}`, "Object 'Kind' is missing"},
		"no version":              {`{kind: Pod}`, "Object 'apiVersion' is missing"},
		"unknown kind":            {`{apiVersion: apps/v1, kind: Nonsense}`, `no kind "Nonsense" is registered for version "apps/v1"`},
		"custom, and nobody asks": {`{apiVersion: e.io/v1, kind: W}`, `no kind "W" is registered for version "e.io/v1"`},
		"of another shape":        {`{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {name: i}, spec: {rules: 5}}`, "Ingress i: rules is not of the right type"},
		"of another type":         {`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: 5}`, "ConfigMap c: "},
		"no version of a definition": {`{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: d}, spec: {group: e.io}}`,
			"spec.versions is missing"},
	} {
		if _, err := converter().Convert(t.Context(), parse(t, tc.in), schema.GroupVersion{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, warned := converter(), ""
	c.Warn = func(text string) { warned += text }
	if _, err := c.Convert(t.Context(), parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, datta: {}}`), schema.GroupVersion{}); err != nil || !strings.Contains(warned, `ConfigMap c: unknown field "datta"`) {
		t.Errorf("%q %v", warned, err)
	}
}

func TestCustomResources(t *testing.T) {
	c := converter()
	asked := 0
	c.Definitions = func(_ context.Context, group, kind string) (*convert.Definition, error) {
		switch kind {
		case "Plain":
			return &convert.Definition{Versions: []string{"v2", "v1"}}, nil
		case "Hooked":
			return &convert.Definition{Versions: []string{"v2", "v1"}, Webhook: func(_ context.Context, objs []convert.Object, to schema.GroupVersion) ([]convert.Object, error) {
				asked++
				return []convert.Object{{"apiVersion": to.String(), "kind": "Hooked", "by": "webhook"}}, nil
			}}, nil
		}
		return nil, nil
	}
	for _, tc := range []struct{ in, to, want string }{
		{`{apiVersion: e.io/v1, kind: Plain, x: 1}`, "", `{"apiVersion":"e.io/v2","kind":"Plain","x":1}`},
		{`{apiVersion: e.io/v2, kind: Plain, x: 1}`, "e.io/v1", `{"apiVersion":"e.io/v1","kind":"Plain","x":1}`},
		{`{apiVersion: e.io/v1, kind: Hooked}`, "e.io/v2", `{"apiVersion":"e.io/v2","by":"webhook","kind":"Hooked"}`},
		{`{apiVersion: e.io/v2, kind: Hooked}`, "apps/v1", `{"apiVersion":"e.io/v2","kind":"Hooked"}`},
		{`{apiVersion: e.io/v1, kind: Plain}`, "e.io/v9", `no kind "Plain" is registered for version "e.io/v9"`},
		{`{apiVersion: e.io/v3, kind: Plain}`, "", `no kind "Plain" is registered for version "e.io/v3"`},
		{`{apiVersion: e.io/v1, kind: Other}`, "", `no kind "Other" is registered for version "e.io/v1"`},
	} {
		to, err := schema.ParseGroupVersion(tc.to)
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Convert(t.Context(), parse(t, tc.in), to)
		got, _ := json.Marshal(out)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != tc.want {
			t.Errorf("%s to %q: %s", tc.in, tc.to, got)
		}
	}
	if asked != 1 {
		t.Errorf("the webhook was asked %d times", asked)
	}
}
