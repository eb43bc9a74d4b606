package budget_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/yaml"
)

func repeat(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }

// field returns a length-delimited field of a message.
func field(number uint64, content string) string {
	out := binary.AppendUvarint(nil, number<<3|2)
	return string(binary.AppendUvarint(out, uint64(len(content)))) + content
}

func message(kind, raw string) string {
	return protobuf.Prefix + field(1, field(1, "v1")+field(2, kind)) + field(2, raw)
}

// bomb returns a YAML document whose aliases stand for copies of one text.
func bomb(text, copies int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "data:\n k: &x %q\n", strings.Repeat("a", text))
	for i := range copies {
		fmt.Fprintf(&b, " k%d: *x\n", i)
	}
	return b.String()
}

// TestHeavyBodies: bodies of 3 MB that would become hundreds of megabytes are refused before they are
// decoded, in every form; bodies that could be stored are not.
func TestHeavyBodies(t *testing.T) {
	var big strings.Builder // a map of as much as can be stored
	for i := range 60000 {
		fmt.Fprintf(&big, ` "key-%d": "a, [b] {c}",`, i)
	}
	pods := func(n int) string {
		return `{"spec":{"containers":[` + repeat(n, `{"name":"a","image":"b"}`) + `]}}`
	}
	for _, tc := range []struct {
		name  string
		codec codecs.Codec
		obj   runtime.Object
		body  string
		heavy bool
	}{
		{"empty messages", protobuf.Codec{}, &corev1.Pod{}, message("Pod", field(2, strings.Repeat(field(2, ""), 1400000))), true},
		{"messages", protobuf.Codec{}, &corev1.Pod{}, message("Pod", field(2, strings.Repeat(field(2, field(1, "name")+field(2, "image")), 60000))), false},
		{"packed numbers", protobuf.Codec{}, &corev1.Pod{}, message("Pod", field(2, field(14, field(4, strings.Repeat("\x01", 1<<20))))), false},
		{"a long text as message", protobuf.Codec{}, &corev1.ConfigMap{}, message("ConfigMap", field(2, field(1, "k")+field(2, strings.Repeat("\x12\x00", 1400000)))), false},
		{"schemas", protobuf.Codec{}, &apiextensionsv1.CustomResourceDefinition{},
			message("CustomResourceDefinition", field(2, field(7, field(4, field(1, strings.Repeat(field(25, ""), 900000)))))), true},
		{"empty objects", json.Codec{}, &corev1.Pod{}, `{"spec":{"containers":[` + repeat(900000, "{}") + `]}}`, true},
		{"objects", json.Codec{}, &corev1.Pod{}, pods(60000), false},
		{"empty lists in a tree", json.Codec{}, &unstructured.Unstructured{}, `{"spec":[` + repeat(900000, "[]") + `]}`, true},
		{"numbers in a tree", json.Codec{}, &unstructured.Unstructured{}, `{"spec":[` + repeat(1400000, "1") + `]}`, false},
		{"objects in a tree", json.Codec{}, &unstructured.Unstructured{}, `{"spec":[` + repeat(120000, `{"x":1,"y":2}`) + `]}`, false},
		{"braces in a text", json.Codec{}, &corev1.ConfigMap{}, `{"data":{"a":"` + strings.Repeat(`{[\"`, 600000) + `"}}`, false},
		{"CBOR", cbor.Codec{}, &corev1.Pod{}, "\xd9\xd9\xf7\xa1\x44spec\xa1\x4acontainers\x9a\x00\x1e\x84\x80" + strings.Repeat("\xa0", 2000000), true},
		{"CBOR text", cbor.Codec{}, &corev1.ConfigMap{}, "\xd9\xd9\xf7\xa1\x44data\xa1\x41a\x5a\x00\x1e\x84\x80" + strings.Repeat("\xa0", 2000000), false},
		{"YAML of many values", yaml.Codec{}, &corev1.ConfigMap{}, `{data: [` + repeat(1400000, "a") + `]}`, true},
		{"YAML of empty objects", yaml.Codec{}, &corev1.Pod{}, `{"spec":{"containers":[` + repeat(200000, "{}") + `]}}`, true},
		{"YAML of aliases", yaml.Codec{}, &corev1.ConfigMap{}, bomb(100000, 2000), true},
		{"YAML of some aliases", yaml.Codec{}, &corev1.ConfigMap{}, bomb(1000, 2000), false},
		{"YAML", yaml.Codec{}, &corev1.ConfigMap{}, "data: {" + big.String() + "}", false},
		{"JSON as YAML", yaml.Codec{}, &corev1.ConfigMap{}, `{"data":{"a":"` + strings.Repeat("1,2,3\\n", 200000) + `"}}`, false},
	} {
		_, err := codecs.Weigh(tc.codec, []byte(tc.body), tc.obj)
		if heavy := apierrors.IsRequestEntityTooLargeError(err); heavy != tc.heavy || !heavy && err != nil {
			t.Errorf("%s, %d bytes: %v", tc.name, len(tc.body), err)
		}
		if len(tc.body) > 3<<20 {
			t.Errorf("%s: no body has %d bytes", tc.name, len(tc.body))
		}
		want := codecs.Expected{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}
		if _, _, err := codecs.ReadBody(tc.codec, []byte(tc.body), want, tc.obj, codecs.Warn); apierrors.IsRequestEntityTooLargeError(err) != tc.heavy {
			t.Errorf("%s is read: %v", tc.name, err)
		}
	}
}

// TestPackedNumbers: numbers that come in one packed field weigh as much as those that come one by one.
func TestPackedNumbers(t *testing.T) {
	const numbers = 1 << 19
	groups := func(wire string) string { return message("Pod", field(2, field(14, wire))) }
	for body, want := range map[string]int64{
		groups(strings.Repeat("\x20\x01", numbers)):               8 * numbers,
		groups(field(4, strings.Repeat("\x01", numbers))):         8 * numbers,
		groups(field(4, strings.Repeat("\x81\x82\x03", numbers))): 8 * numbers,
	} {
		got, err := protobuf.Codec{}.Weigh([]byte(body), &corev1.Pod{})
		if more := got - want; err != nil || more < 0 || more > 10<<10 {
			t.Errorf("%d bytes weigh %d, want %d: %v", len(body), got, want, err)
		}
	}
}

// TestNestedSchemas: schemas that nest thousands of levels deep are refused in every form,
// and large ones as they are in use are not.
func TestNestedSchemas(t *testing.T) {
	arrays := func(n int) string {
		return strings.Repeat(`{"type":"array","items":`, n) + `{"type":"string"}` + strings.Repeat("}", n)
	}
	wire := field(5, "string")
	for range 3000 { // in items: a choice of one schema or several
		wire = field(5, "array") + field(24, field(1, wire))
	}
	definition := func(schema string) string {
		return `{"spec":{"versions":[{"schema":{"openAPIV3Schema":` + schema + `}}]}}`
	}
	var wide strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&wide, `,"p%d":{"description":%q,"type":"array","items":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}}`, i, strings.Repeat("words ", 80))
	}
	for _, tc := range []struct {
		name   string
		codec  codecs.Codec
		body   string
		nested bool
	}{
		{"arrays", json.Codec{}, definition(arrays(4000)), true},
		{"some arrays", json.Codec{}, definition(arrays(500)), false},
		{"YAML", yaml.Codec{}, definition(arrays(2000)), true},
		{"messages", protobuf.Codec{}, message("CustomResourceDefinition", field(2, field(7, field(4, field(1, wire))))), true},
		{"much of it", json.Codec{}, definition(`{"type":"object","properties":{` + wide.String()[1:] + `}}`), false},
		{"no schema", json.Codec{}, `{"x":` + strings.Repeat(`{"items":`, 100) + `1` + strings.Repeat("}", 100) + `}`, false},
	} {
		_, err := codecs.Weigh(tc.codec, []byte(tc.body), &apiextensionsv1.CustomResourceDefinition{})
		if nested := apierrors.IsRequestEntityTooLargeError(err); nested != tc.nested || !nested && err != nil {
			t.Errorf("%s, %d bytes: %v", tc.name, len(tc.body), err)
		}
	}
	if budget.Recursive(reflect.TypeFor[corev1.Pod]()) || !budget.Recursive(reflect.TypeFor[*apiextensionsv1.CustomResourceDefinition]()) {
		t.Error("definitions alone hold what holds itself")
	}
}

// TestRepeatedKeys: of a million repeated keys the first are named, as in any form.
func TestRepeatedKeys(t *testing.T) {
	want := codecs.Expected{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}
	body := "data:\n" + strings.Repeat(" k: a\n", 300000)
	_, problems, err := codecs.ReadBody(yaml.Codec{}, []byte(body), want, &corev1.ConfigMap{}, codecs.Warn)
	if got := codecs.Warnings(problems); err != nil || len(got) != 100 {
		t.Errorf("%d warnings, %v", len(got), err)
	}
}

// TestSpend: a budget asks now and then whether anybody still waits.
func TestSpend(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := budget.New(ctx, "work")
	if err := b.Spend(1); err != nil {
		t.Error(err)
	}
	cancel()
	n := 0
	for ; b.Spend(1) == nil; n++ {
	}
	if n > 1<<16 {
		t.Errorf("%d steps after the end", n)
	}
	if err := budget.Of(t.Context(), "work", 5).Spend(6); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Error(err)
	}
}

func TestTooDeep(t *testing.T) {
	for text, want := range map[string]bool{
		strings.Repeat("[", 10_001): true, strings.Repeat("[", 10_000): false, strings.Repeat("[]", 50_000): false,
		strings.Repeat(`{"a":`, 10_001): true,
	} {
		if budget.TooDeep([]byte(text)) != want {
			t.Errorf("%d bytes, %.10s: %v", len(text), text, !want)
		}
	}
}
