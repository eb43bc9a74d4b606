package transcode_test

import (
	"bytes"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/protobuf/transcode"
	"github.com/rowlock/rowlock/codecs/sample"
)

var (
	own   = json.New(json.Settings{})
	plain = protobuf.Codec{} // decodes and marshals
)

// TestEqualsMarshalling holds random objects of every kind, as they are stored, to what
// decoding and marshalling make of them.
func TestEqualsMarshalling(t *testing.T) {
	scheme := sample.Scheme()
	r := rand.New(rand.NewSource(3))
	kinds, made, givenUp := 0, 0, map[string]bool{}
	for _, gvk := range sample.Kinds(scheme) {
		newObject := func() runtime.Object { return sample.New(scheme, gvk) }
		of := reflect.TypeOf(newObject()).Elem()
		if _, err := plain.Encode(nil, newObject()); err != nil || strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") {
			continue
		}
		if !transcode.Supports(of) {
			givenUp[gvk.Group+"/"+gvk.Kind] = true
			continue
		}
		kinds++
		for range 40 {
			obj := newObject()
			sample.Fill(r, obj)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			data, err := own.Encode(nil, obj)
			if err != nil {
				t.Fatal(err)
			}
			data = bytes.TrimSuffix(data, []byte("\n"))
			want, err := plain.FromJSON(newObject, data)
			if err != nil {
				continue // there is no message of it either way
			}
			got, ok := transcode.Append(nil, []byte("before"), data, of)
			if !ok {
				if string(got) != "before" {
					t.Fatalf("%v: given up, with something appended", gvk)
				}
				continue
			}
			made++
			if !bytes.Equal(got[len("before"):], want) {
				t.Fatalf("%v: %s\n got %x\nwant %x", gvk, data, got[len("before"):], want)
			}
		}
	}
	t.Logf("%d kinds, %d messages; given up: %v", kinds, made, givenUp)
	if kinds < 100 || made < kinds*20 {
		t.Errorf("%d messages of %d kinds were made", made, kinds)
	}
	for _, often := range []string{"/Pod", "/ConfigMap", "/Secret", "/Node", "/Service", "/Event", "apps/Deployment", "apps/ReplicaSet", "coordination.k8s.io/Lease", "discovery.k8s.io/EndpointSlice"} {
		if givenUp[often] {
			t.Errorf("%s is given up", often)
		}
	}
}

// TestTexts: text in another form than encoders write is transcoded correctly, or refused.
func TestTexts(t *testing.T) {
	made := 0
	for _, text := range []string{
		`{"metadata":{"name":"a","creationTimestamp":null},"spec":{"containers":null},"status":{}}`,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a\u00e4\n\"<","labels":{"a":"b","c":"é"},"creationTimestamp":"2026-01-02T03:04:05+02:00"},"spec":{},"status":{}}`,
		`{"metadata":{},"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x","type":""}},{"name":"w"},{"name":"e","emptyDir":{"sizeLimit":"1024Mi"}}],"containers":[{"name":"c","resources":{"limits":{"cpu":"1000m","memory":"0.5Gi"}},"livenessProbe":{"httpGet":{"path":"/","port":80},"periodSeconds":3}},{"name":"d","resources":{},"readinessProbe":{"exec":{"command":["a",""]},"grpc":{"port":1,"service":null},"initialDelaySeconds":-1}}]},"status":{}}`,
		`{"metadata":{},"spec":{"containers":[{"name":"` + strings.Repeat("long", 5000) + `","resources":{}}]},"status":{}}`,
		`{}`, `{"spec":{}}`, `{"status":null}`, `{"metadata":{"name":null}}`, `{"metadata":{"labels":{}},"spec":{"containers":[]}}`,
		`{"metadata":{"labels":{"b":"1","a":"2"}}}`, `{"metadata":{"labels":{"a":"1","a":"2"}}}`, `{"metadata":{"labels":{"a":null}}}`,
		`{"spec":{},"metadata":{}}`, `{"metadata":{},"metadata":{"name":"x"}}`, `{"metadata":{"name":"a","Name":"b"}}`, `{"new":1}`,
		` {"metadata":{}}`, `{"metadata":{} }`, `{"metadata":{}} `, `{"metadata":{"name":"\ud83d\ude00"}}`, "{\"metadata\":{\"name\":\"\xff\"}}", "{\"metadata\":{\"name\":\"\xff\\n\"}}",
		`{"metadata":{"name":1}}`, `{"metadata":{"generation":1e3}}`, `{"metadata":{"generation":1.0}}`, `{"metadata":{"generation":9223372036854775807}}`, `{"metadata":{"generation":9223372036854775808}}`,
		`{"metadata":{"generation":-1}}`, `{"metadata":{"creationTimestamp":"2026-01-02T03:04:05.9Z"}}`, `{"metadata":{"creationTimestamp":"0001-01-01T00:00:00Z"}}`, `{"metadata":{"creationTimestamp":"yesterday"}}`,
		`{"spec":{"overhead":{"cpu":1,"memory":" 1"}}}`, `{"spec":{"overhead":{"cpu":"1e1000000000"}}}`, `{"spec":{"overhead":{"a":"","b":"x"}}}`, `{"spec":{"overhead":{"a":null}}}`,
		`{"spec":{"hostNetwork":"true"}}`, `{"spec":{"hostNetwork":null,"hostPID":false}}`, `{"spec":{"tolerations":[null]}}`, `{"spec":{"tolerations":[{},{"key":"a"}]}}`,
		`{"metadata":{"managedFields":[{"manager":"m","time":null,"fieldsV1":{"f:a":{"k:{\"b\":1}":{}}}},{"fieldsV1":null}]}}`,
		`{"metadata":`, `{"metadata"`, `{"metadata":{}`, `{"metadata":{},}`, `{,}`, `{`, ``, `null`, `[]`, `"a"`, `{"metadata":{"labels":{"a":"b",}}}`, `{"spec":{"tolerations":[{},]}}`,
	} {
		data := []byte(text)
		got, ok := transcode.Append(nil, nil, data, reflect.TypeFor[corev1.Pod]())
		if !ok {
			continue
		}
		made++
		want, err := plain.FromJSON(func() runtime.Object { return &corev1.Pod{} }, data)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%.300s: %v\n got %x\nwant %x", text, err, got, want)
		}
	}
	if made < 15 {
		t.Errorf("%d messages were made", made)
	}
}

// TestTypes: types that are not what they seem are given up.
func TestTypes(t *testing.T) {
	type own struct {
		Name string `json:"name"` // has no number
	}
	type list struct {
		metav1.TypeMeta `json:",inline"`
		Next            *list `json:"next" protobuf:"bytes,1,opt,name=next"`
	}
	for _, of := range []reflect.Type{reflect.TypeFor[own](), reflect.TypeFor[list](), reflect.TypeFor[string](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[runtime.Unknown]()} {
		if transcode.Supports(of) {
			t.Errorf("%v", of)
		}
	}
}

func FuzzAppend(f *testing.F) {
	r := rand.New(rand.NewSource(4))
	kinds := []func() runtime.Object{
		func() runtime.Object { return &corev1.Pod{} }, func() runtime.Object { return &corev1.Secret{} }, func() runtime.Object { return &corev1.Event{} },
	}
	for i, newObject := range kinds {
		for range 3 {
			obj := newObject()
			sample.Fill(r, obj)
			data, err := own.Encode(nil, obj)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(bytes.TrimSuffix(data, []byte("\n")), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		newObject := kinds[int(kind)%len(kinds)]
		got, ok := transcode.Append(nil, nil, data, reflect.TypeOf(newObject()).Elem())
		if !ok || !own.DecodeClean(data, newObject()) {
			return // the text is no JSON, which is for the caller to know
		}
		want, err := plain.FromJSON(newObject, data)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: %v\n got %x\nwant %x", data, err, got, want)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	data := samplePod(b)
	b.Run("straight", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		var dst []byte
		for b.Loop() {
			var ok bool
			if dst, ok = transcode.Append(nil, dst[:0], data, reflect.TypeFor[corev1.Pod]()); !ok {
				b.Fatal("given up")
			}
		}
	})
	b.Run("decoded", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		c := protobuf.Codec{JSON: own}
		for b.Loop() {
			obj := &corev1.Pod{}
			if _, err := own.Decode(data, obj, codecs.Ignore); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Message(obj); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// samplePod returns a Pod of some 4 KB.
func samplePod(t testing.TB) []byte {
	r := rand.New(rand.NewSource(5))
	for {
		obj := &corev1.Pod{}
		sample.Fill(r, obj)
		data, err := own.Encode(nil, obj)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 4000 && len(data) < 5000 {
			return bytes.TrimSuffix(data, []byte("\n"))
		}
	}
}
