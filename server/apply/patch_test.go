package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/apply"
)

var serviceKind = schema.GroupVersionKind{Version: "v1", Kind: "Service"}

func service() *corev1.Service {
	s := &corev1.Service{}
	s.Name, s.Namespace = "v", "n"
	s.Spec.Selector = map[string]string{"app": "v"}
	s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 80, Protocol: "TCP"}, {Name: "b", Port: 81, Protocol: "TCP"}}
	return s
}

// secrets knows one kind.
func secrets(kind schema.GroupVersionKind) (runtime.Object, bool) {
	return &corev1.Secret{}, kind == corev1.SchemeGroupVersion.WithKind("Secret")
}

func TestPatch(t *testing.T) {
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/kind","value":"Service"},`, 10001), ",") + "]"
	tests := []struct {
		name, typ, body string
		strictness      codecs.Strictness
		want            string // JSON of spec, or the status code and a part of the message
		warnings        string
	}{
		{"add by JSON Patch", codecs.PatchJSON, `[{"op":"add","path":"/spec/type","value":"NodePort"}]`, codecs.Warn, `"type":"NodePort"`, ""},
		{"last element", codecs.PatchJSON, `[{"op":"remove","path":"/spec/ports/-1"}]`, codecs.Warn, `"ports":[{"name":"a","protocol":"TCP","port":80,"targetPort":0}]`, ""},
		{"failed test", codecs.PatchJSON, `[{"op":"test","path":"/spec/type","value":"x"}]`, codecs.Warn, "422 the server rejected our request due to an error in our request", ""},
		{"not a list", codecs.PatchJSON, `{"op":"add"}`, codecs.Warn, "400 error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp", ""},
		{"operation of a wrong type", codecs.PatchJSON, `[{"op":1}]`, codecs.Warn, "400 error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string", ""},
		{"kind of a wrong type", codecs.PatchMerge, `{"kind":1}`, codecs.Warn, "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string", ""},
		{"version of a wrong form", codecs.PatchMerge, `{"apiVersion":"a/b/c"}`, codecs.Warn, "unexpected GroupVersion string: a/b/c", ""},
		{"unknown kind", codecs.PatchMerge, `{"kind":"Nonsense"}`, codecs.Warn, `no kind "Nonsense" is registered for version "v1" in scheme`, ""},
		{"unknown kind without a version", codecs.PatchMerge, `{"kind":"Nonsense","apiVersion":null}`, codecs.Warn, `no kind "Nonsense" is registered for the internal version of group "" in scheme`, ""},
		{"known kind", codecs.PatchMerge, `{"kind":"Secret"}`, codecs.Warn, "converting (v1.Secret) to (core.Service): unknown conversion", ""},
		{"known kind that does not fit", codecs.PatchMerge, `{"kind":"Secret","data":{"a":"!"}}`, codecs.Warn, "illegal base64 data at input byte 0", ""},
		{"cut off", codecs.PatchJSON, `[{"op":`, codecs.Ignore, "400 unexpected end of JSON input", ""},
		{"too many operations", codecs.PatchJSON, many, codecs.Ignore, "413 Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001", ""},
		{"unknown field of an operation", codecs.PatchJSON, `[{"op":"add","path":"/spec/type","value":"NodePort","why":1}]`, codecs.Warn, `"type":"NodePort"`, `json patch unknown field "[0].why"`},
		{"wrong type", codecs.PatchJSON, `[{"op":"add","path":"/spec/type","value":7}]`, codecs.Warn, `422  "" is invalid: patch: Invalid value: `, ""},
		{"other kind", codecs.PatchJSON, `[{"op":"replace","path":"/kind","value":"Secret"}]`, codecs.Warn, `422  "" is invalid: patch: Invalid value: `, ""},
		{"merge", codecs.PatchMerge, `{"spec":{"selector":{"app":null,"b":"c"}}}`, codecs.Warn, `"selector":{"b":"c"}`, ""},
		{"merge replaces lists", codecs.PatchMerge, `{"spec":{"ports":[{"port":9}]}}`, codecs.Warn, `"ports":[{"port":9,"targetPort":0}]`, ""},
		{"merge of null", codecs.PatchMerge, `null`, codecs.Warn, "400 Invalid JSON Patch", ""},
		{"merge warns", codecs.PatchMerge, `{"spec":{"prots":[]}}`, codecs.Warn, `"selector":{"app":"v"}`, `unknown field "spec.prots"`},
		{"merge is strict", codecs.PatchMerge, `{"spec":{"prots":[]}}`, codecs.Strict, `422  "" is invalid: patch: Invalid value: `, ""},
		{"merge drops", codecs.PatchMerge, `{"spec":{"prots":[]}}`, codecs.Ignore, `"selector":{"app":"v"}`, ""},
		{"strategic merges lists", codecs.PatchStrategic, `{"spec":{"ports":[{"port":81,"name":"c"},{"port":82,"name":"d"}]}}`, codecs.Warn,
			`"ports":[{"name":"a","protocol":"TCP","port":80,"targetPort":0},{"name":"c","protocol":"TCP","port":81,"targetPort":0},{"name":"d","port":82,"targetPort":0}]`, ""},
		{"strategic deletes", codecs.PatchStrategic, `{"spec":{"ports":[{"port":81,"$patch":"delete"}]}}`, codecs.Warn, `"ports":[{"name":"a","protocol":"TCP","port":80,"targetPort":0}]`, ""},
		{"strategic without key", codecs.PatchStrategic, `{"spec":{"ports":[{"name":"x"}]}}`, codecs.Warn, "0 map: map[name:x] does not contain declared merge key: port", ""},
		{"strategic is strict", codecs.PatchStrategic, `{"spec":{"ports":[{"port":80,"tagretPort":1}]}}`, codecs.Strict,
			`422  "" is invalid: patch: Invalid value: "map[spec:map[ports:[map[port:80 tagretPort:1]]]]": strict decoding error: unknown field "spec.ports[0].tagretPort"`, ""},
		{"strategic finds duplicates", codecs.PatchStrategic, `{"metadata":{"labels":{"a":"1"},"labels":{"a":"2"}}}`, codecs.Warn, `"selector":{"app":"v"}`, `duplicate field "metadata.labels"`},
		{"strategic with a wrong form", codecs.PatchStrategic, `{"spec":{"ports":"web"}}`, codecs.Warn,
			`422  "" is invalid: patch: Invalid value: "map[spec:map[ports:web]]": cannot restore slice from string`, ""},
		{"strategic cut off", codecs.PatchStrategic, `{"spec":`, codecs.Warn, "400 unexpected end of JSON input", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := apply.Patch{Type: test.typ, Body: []byte(test.body), Strictness: test.strictness, JSON: codecjson.Codec{}, Known: secrets}
			current := service()
			obj, warnings, err := p.Change(context.Background(), serviceKind, current, nil)
			got := ""
			if err != nil {
				var status apierrors.APIStatus
				code := 0
				if errors.As(err, &status) {
					code = int(status.Status().Code)
				}
				got = fmt.Sprint(code, " ", err)
			} else {
				text, _ := json.Marshal(obj.(*corev1.Service).Spec)
				got = string(text)
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if joined := strings.Join(warnings, "; "); joined != test.warnings {
				t.Errorf("warnings %q, want %q", joined, test.warnings)
			}
			before, _ := json.Marshal(service().Spec)
			if after, _ := json.Marshal(current.Spec); string(before) != string(after) {
				t.Error("the current object was changed")
			}
		})
	}
}

func TestPatchWithoutVersion(t *testing.T) {
	p := apply.Patch{Type: codecs.PatchMerge, Body: []byte(`{"apiVersion":null,"kind":null}`), Strictness: codecs.Warn, JSON: codecjson.Codec{}}
	obj, warnings, err := p.Change(context.Background(), serviceKind, service(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if obj.(*corev1.Service).Name != "" {
		t.Error("an object without a version was read")
	}
	if got := strings.Join(warnings, "; "); got != `unknown field "metadata"; unknown field "spec"; unknown field "status"` {
		t.Error(got)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add(0, `[{"op":"add","path":"/spec/type","value":"x"}]`)
	f.Add(1, `{"spec":{"ports":[{"port":80,"$patch":"delete"}]}}`)
	f.Add(2, `{"spec":{"$setElementOrder/ports":[{"port":80}],"ports":[{"$retainKeys":["port"],"port":80}]}}`)
	types := []string{codecs.PatchJSON, codecs.PatchMerge, codecs.PatchStrategic}
	f.Fuzz(func(t *testing.T, typ int, body string) {
		p := apply.Patch{Type: types[uint(typ)%3], Body: []byte(body), Strictness: codecs.Warn, JSON: codecjson.Codec{}}
		obj, _, err := p.Change(context.Background(), serviceKind, service(), nil)
		if (obj == nil) == (err == nil) {
			t.Errorf("object %v, error %v", obj, err)
		}
	})
}

const statusPatch = `{"metadata":{"uid":"1"},"status":{"$setElementOrder/conditions":[{"type":"PodReadyToStartContainers"},{"type":"Initialized"},{"type":"Ready"}],
"conditions":[{"lastTransitionTime":"2026-01-02T03:04:05Z","status":"True","type":"Initialized"},{"lastTransitionTime":"2026-01-02T03:04:05Z","status":"True","type":"Ready"}],
"containerStatuses":[{"containerID":"containerd://abcdef","image":"registry.example/web:1","imageID":"sha256:1","name":"web","ready":true,"restartCount":0,"started":true,"state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}}}],
"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"startTime":"2026-01-02T03:04:05Z"}}`

func benchmarkPatch(b *testing.B, typ, body string) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(podText), pod); err != nil {
		b.Fatal(err)
	}
	p := apply.Patch{Type: typ, Body: []byte(body), Strictness: codecs.Warn, JSON: codecjson.Codec{}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.Change(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, pod, []byte(podText)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStrategicPodStatus(b *testing.B) {
	benchmarkPatch(b, codecs.PatchStrategic, statusPatch)
}

func BenchmarkMergePodStatus(b *testing.B) {
	_, rest, _ := strings.Cut(statusPatch, "\n")
	benchmarkPatch(b, codecs.PatchMerge, `{"metadata":{"uid":"1"},"status":{`+rest)
}

const podText = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1","namespace":"default","uid":"1","resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web","tier":"front"},
"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tier":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{}}}}}}]},
"spec":{"volumes":[{"name":"data","emptyDir":{}},{"name":"token","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],
"containers":[{"name":"web","image":"registry.example/web:1","ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"resources":{"limits":{"cpu":"1","memory":"128Mi"},"requests":{"cpu":"100m","memory":"64Mi"}},"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"token","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],
"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","nodeName":"n1","securityContext":{},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},
"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"}],"qosClass":"Burstable"}}`

// TestPatchThatGrows: each copy doubles the document, until that is too much.
func TestPatchThatGrows(t *testing.T) {
	var ops []string
	for i := range 40 {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/k%d"}`, i))
	}
	p := apply.Patch{Type: codecs.PatchJSON, Body: []byte("[" + strings.Join(ops, ",") + "]"), JSON: codecjson.Codec{}}
	current := &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", 1000)}}
	_, _, err := p.Change(context.Background(), corev1.SchemeGroupVersion.WithKind("ConfigMap"), current, nil)
	var st *apierrors.StatusError
	if !errors.As(err, &st) || st.ErrStatus.Code != 422 {
		t.Errorf("a patch that doubles the object forty times: %v", err)
	}
}
