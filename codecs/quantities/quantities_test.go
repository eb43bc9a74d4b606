package quantities_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/quantities"
	"github.com/rowlock/rowlock/codecs/yaml"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

const bomb = "12345678901234567890123e100000000"

func TestFits(t *testing.T) {
	for text, want := range map[string]bool{
		"1": true, "100m": true, "1Ei": true, "1E": true, "1e3": true, "-1.5e-9": true, "1e9999": true, "": true, "abc": true,
		"1e10000": false, "1e-10000000": false, bomb: false, "1E+99999": false, strings.Repeat("9", 1025): false,
	} {
		if got := quantities.Fits(text); got != want {
			t.Errorf("Fits(%.40q) = %v", text, got)
		}
		if !want && !quantities.Suspect([]byte(`{"a":"`+text+`"}`)) {
			t.Errorf("%.40q is not suspect", text)
		}
	}
}

// TestCheckAny: whatever the case of names, no string or number of JSON has the form of a quantity with a long exponent.
func TestCheckAny(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":"1e5","b":[1,"x12345","node12345","e123456"]}`: true, `{"a":"1e12345m"}`: true, `{"a":`: true, ``: true,
		`{"A":["1e-10000000"]}`: false, `{"a":1E+99999}`: false, `"` + bomb + `"`: false, `{"a":{"b":"\u0031e-10000000"}}`: false, `["` + strings.Repeat("9", 1025) + `"]`: false,
	} {
		if err := quantities.CheckAny([]byte(text)); (err == nil) != want {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// quickly fails if fn takes as long as a quantity that is computed.
func quickly(t *testing.T, fn func()) {
	t.Helper()
	start := time.Now()
	fn()
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func refused(t *testing.T, codec codecs.Codec, data []byte) {
	t.Helper()
	quickly(t, func() {
		var found *quantities.Error
		if _, err := codec.Decode(data, &corev1.Pod{}, codecs.Strict); !errors.As(err, &found) {
			t.Errorf("%s: %v", codec.MediaType(), err)
		}
	})
}

func TestDecodersRefuse(t *testing.T) {
	pod := func(amount string) string {
		return `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":` + amount + `}}}]}}`
	}
	for _, amount := range []string{`"` + bomb + `"`, "1e-10000000", `"1e-10000000"`, `"` + bomb + `","cpu":"1"`} {
		refused(t, json.Codec{}, []byte(pod(amount)))
	}
	refused(t, yaml.Codec{}, []byte("apiVersion: v1\nkind: Pod\nspec:\n  overhead: {cpu: \"1e-10000000\"}\n"))

	raw, err := direct.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"overhead": map[string]any{"cpu": bomb}}})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, cbor.Codec{}, raw)

	// pod.spec(2).overhead(32){key(1) "cpu", value(2) quantity(1)}
	field := func(number int, content string) string {
		tag := number<<3 | 2
		head := string([]byte{byte(tag)})
		if tag > 127 {
			head = string([]byte{byte(tag&127 | 128), byte(tag >> 7)})
		}
		return head + string([]byte{byte(len(content))}) + content
	}
	quantity := field(2, field(1, bomb))
	message := field(2, field(32, field(1, "cpu")+quantity))
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: []byte(message)}
	envelope, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	refused(t, protobuf.Codec{}, append([]byte(protobuf.Prefix), envelope...))
}

// Text in other places that looks like a long exponent is not checked.
func TestOtherTextPasses(t *testing.T) {
	in := `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"commit":"1e123456"},"name":"12e999999"},"unknown":"1e99999999"}`
	pod := &corev1.Pod{}
	if _, err := (json.Codec{}).Decode([]byte(in), pod, codecs.Ignore); err != nil || pod.Labels["commit"] != "1e123456" {
		t.Fatal(pod.ObjectMeta, err)
	}
	data, err := (protobuf.Codec{}).Encode(nil, pod)
	if err != nil {
		t.Fatal(err)
	}
	again := &corev1.Pod{}
	if _, err := (protobuf.Codec{}).Decode(data, again, codecs.Ignore); err != nil || again.Name != "12e999999" {
		t.Fatal(again.ObjectMeta, err)
	}
}

func TestDeepTextIsLeftToTheDecoder(t *testing.T) {
	deep := []byte(`{"spec":` + strings.Repeat("[", 1<<20) + `1e99999999`)
	quickly(t, func() {
		if err := quantities.CheckJSON(deep, reflect.TypeFor[corev1.Pod]()); err != nil {
			t.Error(err)
		}
	})
}

func TestHolds(t *testing.T) {
	if !quantities.Holds(reflect.TypeFor[*corev1.PodList]()) || quantities.Holds(reflect.TypeFor[metav1.ObjectMeta]()) || quantities.Holds(reflect.TypeFor[corev1.ConfigMap]()) {
		t.Error("pods hold quantities, config maps do not")
	}
}
