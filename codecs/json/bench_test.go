package json_test

import (
	stdjson "encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	exact "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/codecs"
)

const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-7d4b9c8f6-abcde","generateName":"web-7d4b9c8f6-","namespace":"default","uid":"b0b2f8f0-8a4e-4b0e-9a53-111111111111","resourceVersion":"12345","creationTimestamp":"2026-11-21T01:13:39Z","labels":{"app":"web","pod-template-hash":"7d4b9c8f6"},"annotations":{"a.example.com/b":"c"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d4b9c8f6","uid":"b0b2f8f0-8a4e-4b0e-9a53-222222222222","controller":true,"blockOwnerDeletion":true}],"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-11-21T01:13:39Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:a.example.com/b":{}},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}]},"spec":{"volumes":[{"name":"kube-api-access-xyz","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"containers":[{"name":"web","image":"nginx:1.27","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"b"}],"resources":{"limits":{"cpu":"500m","memory":"128Mi"},"requests":{"cpu":"250m","memory":"64Mi"}},"volumeMounts":[{"name":"kube-api-access-xyz","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"livenessProbe":{"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","nodeName":"node-1","securityContext":{},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-21T01:13:45Z"},{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-21T01:13:45Z"}],"hostIP":"10.0.0.1","podIP":"10.244.0.5","podIPs":[{"ip":"10.244.0.5"}],"startTime":"2026-11-21T01:13:39Z","containerStatuses":[{"name":"web","state":{"running":{"startedAt":"2026-11-21T01:13:44Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"docker.io/library/nginx:1.27","imageID":"docker.io/library/nginx@sha256:aa","containerID":"containerd://bb","started":true}],"qosClass":"Burstable"}}`

const configMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"default","uid":"b0b2f8f0-8a4e-4b0e-9a53-111111111111","resourceVersion":"12345","creationTimestamp":"2026-11-21T01:13:39Z","labels":{"app":"web"}},"data":{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","b":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}}`

var bodies = []struct {
	name string
	data []byte
	make func() runtime.Object
}{
	{"Pod", []byte(pod), func() runtime.Object { return &corev1.Pod{} }},
	{"ConfigMap", []byte(configMap), func() runtime.Object { return &corev1.ConfigMap{} }},
	{"Unstructured", []byte(pod), func() runtime.Object { return &unstructured.Unstructured{} }},
}

func BenchmarkDecode(b *testing.B) {
	for _, body := range bodies {
		run := func(name string, decode func([]byte, runtime.Object) error) {
			b.Run(body.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body.data)))
				for b.Loop() {
					if err := decode(body.data, body.make()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("rowlock", func(data []byte, obj runtime.Object) error {
			_, err := fast.Decode(data, obj, codecs.Strict)
			return err
		})
		run("sigs", func(data []byte, obj runtime.Object) error {
			_, err := exact.UnmarshalStrict(data, obj)
			return err
		})
		run("standard", func(data []byte, obj runtime.Object) error { return stdjson.Unmarshal(data, obj) })
	}
}

func BenchmarkCanonical(b *testing.B) {
	for _, body := range bodies[:2] {
		b.Run(body.name, func(b *testing.B) {
			obj := body.make()
			b.ReportAllocs()
			b.SetBytes(int64(len(body.data)))
			for b.Loop() {
				if _, ok := fast.Canonical(body.data, obj); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, body := range bodies[:2] {
		obj := body.make()
		if err := stdjson.Unmarshal(body.data, obj); err != nil {
			b.Fatal(err)
		}
		b.Run(body.name+"/rowlock", func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				var err error
				if buf, err = fast.Encode(buf[:0], obj); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(body.name+"/standard", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := stdjson.Marshal(obj); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWeigh measures the share of weighing in decoding.
func BenchmarkWeigh(b *testing.B) {
	data := []byte(pod)
	b.Run("weigh", func(b *testing.B) {
		for b.Loop() {
			if _, err := codecs.Weigh(fast, data, &corev1.Pod{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if !fast.DecodeClean(data, &corev1.Pod{}) {
				b.Fatal("not clean")
			}
		}
	})
}
