package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// write returns the creation of a ConfigMap, and its warnings.
func write(t testing.TB) (*admission.Attributes, *strings.Builder) {
	t.Helper()
	r := kinds.NewCatalogue(builtin.Resources()).Lookup("", "v1", "configmaps")
	recorded := &strings.Builder{}
	return &admission.Attributes{
		Operation: admission.Create, Resource: r, Namespace: "ns", Name: "a",
		Object:   &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}, Data: map[string]string{"k": "v"}},
		Warn:     func(text string) { recorded.WriteString("warning " + text + "\n") },
		Annotate: func(key, value string) { recorded.WriteString(key + "=" + value + "\n") },
	}, recorded
}

// answered runs an answer through all that becomes of it.
func answered(t testing.TB, data []byte, mutates bool) (*admission.Attributes, string, error) {
	t.Helper()
	a, recorded := write(t)
	review, err := decode(data, "v1")
	if err != nil {
		return a, "", callFailed("hook.example.org", err)
	}
	answer, err := verify(review, "u", "v1", mutates)
	if err != nil {
		return a, "", err
	}
	answer.report("hook.example.org", a)
	if !answer.allowed {
		return a, recorded.String(), denial("hook.example.org", answer.result)
	}
	if len(answer.patch) == 0 {
		return a, recorded.String(), nil
	}
	v := &view{a: a}
	s := &shown{target: criteria.Target{Resource: a.Resource, Kind: a.Resource.GVK()}}
	if err := s.prepare(a); err != nil {
		t.Fatal(err)
	}
	h := &hook{name: "hook.example.org"}
	_, err = (&Mutating{}).apply(t.Context(), h, v, s, answer.patch, &notes{h: h, a: a})
	return a, recorded.String(), err
}

func review(t testing.TB, response map[string]any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestFailuresAreLoggedOnce: the writes of clients do not cause a line each while a webhook cannot be called. Each webhook has a line of
// its own.
func TestFailuresAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	k := &asker{cfg: Config{Log: slog.New(slog.NewTextHandler(&out, nil))}, phase: "validating"}
	a, _ := write(t)
	for _, ignores := range []bool{true, false} {
		h := &hook{name: fmt.Sprintf("ignores-%t.example.org", ignores), ignores: ignores}
		for range 100 {
			open, err := k.settle(t.Context(), h, &view{a: a}, &outcome{err: &callError{h.name, errors.New("connection refused"), 400}})
			if open != ignores || (err == nil) != ignores {
				t.Fatalf("%t, %v", open, err)
			}
		}
		if n := strings.Count(out.String(), h.name); n != 1 {
			t.Errorf("%s: %d lines", h.name, n)
		}
	}
}

// TestNotesAreBounded: an answer of many, or long, audit annotations adds those that fit.
func TestNotesAreBounded(t *testing.T) {
	notes := map[string]string{"b": strings.Repeat("Q", 300<<10), "z": "last"}
	for i := range 2000 {
		notes[fmt.Sprintf("n%d", i)] = strings.Repeat("y", 1000)
	}
	_, recorded, err := answered(t, review(t, map[string]any{"uid": "u", "allowed": true, "auditAnnotations": notes}), false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(recorded, "Q") || len(recorded) < 200<<10 || len(recorded) > 300<<10 {
		t.Errorf("%d bytes are recorded", len(recorded))
	}
}

func TestAnswers(t *testing.T) {
	patch := func(text string) map[string]any {
		return map[string]any{"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": []byte(text)}
	}
	for name, c := range map[string]struct {
		answer   []byte
		looks    bool // at objects only
		want     string
		recorded string
		changed  bool
	}{
		"yes":                  {answer: review(t, map[string]any{"uid": "u", "allowed": true})},
		"no":                   {answer: review(t, map[string]any{"uid": "u"}), want: `admission webhook "hook.example.org" denied the request without explanation`},
		"no with a reason":     {answer: review(t, map[string]any{"uid": "u", "status": map[string]any{"reason": "Never"}}), want: `denied the request: Never`},
		"no with a message":    {answer: review(t, map[string]any{"uid": "u", "status": map[string]any{"message": "m", "code": 200}}), want: `denied the request: m`},
		"notes":                {answer: review(t, map[string]any{"uid": "u", "allowed": true, "warnings": []string{"w"}, "auditAnnotations": map[string]string{"b": "2", "a": "1", "c/d": "3", "": "4"}}), recorded: "hook.example.org/a=1\nhook.example.org/b=2\nwarning w\n"},
		"nothing":              {answer: []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`), want: "webhook response was absent"},
		"no kind":              {answer: []byte(`{"response":{"uid":"u","allowed":true}}`), want: "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="},
		"a success":            {answer: []byte(`{"apiVersion":"v1","kind":"Status","status":"Success"}`), want: "webhook response was absent"},
		"a failure":            {answer: []byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","message":"m"}`), want: "failed to call webhook: m"},
		"no JSON":              {answer: []byte(`yes`), want: "couldn't get version/kind; json parse error"},
		"another kind":         {answer: []byte(`{"apiVersion":"v1","kind":"Pod"}`), want: `no kind "Pod" is registered for version "v1"`},
		"a patch":              {answer: review(t, patch(`[{"op":"add","path":"/data/x","value":"y"}]`)), changed: true},
		"a patch of nothing":   {answer: review(t, patch(`[]`))},
		"a patch to look at":   {answer: review(t, patch(`[]`)), looks: true, want: "may not return response.patch"},
		"a patch without type": {answer: review(t, map[string]any{"uid": "u", "allowed": true, "patch": []byte("[]")}), want: "but not response.patchType"},
		"a type without patch": {answer: review(t, map[string]any{"uid": "u", "allowed": true, "patchType": "JSONPatch"}), want: "but not response.patch"},
		"a patch that is none": {answer: review(t, patch(`{"op":"add"}`)), want: "cannot unmarshal"},
		"a patch of others":    {answer: review(t, patch(`[{"op":"replace","path":"/data/no/such","value":1}]`)), want: "no/such"},
		"a new kind":           {answer: review(t, patch(`[{"op":"replace","path":"/kind","value":"Secret"}]`)), want: "made the object a /v1, Kind=Secret"},
		"a wrong type":         {answer: review(t, patch(`[{"op":"replace","path":"/data","value":7}]`)), want: "data"},
	} {
		t.Run(name, func(t *testing.T) {
			a, recorded, err := answered(t, c.answer, !c.looks)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if recorded != c.recorded {
				t.Errorf("recorded %q, want %q", recorded, c.recorded)
			}
			if before, _ := write(t); apiequality.Semantic.DeepEqual(before.Object, a.Object) == c.changed {
				t.Errorf("the object is %+v", a.Object)
			}
		})
	}
}

// FuzzAnswer puts anything in the place of an answer: it may be refused, but nothing
// breaks, and the write stays the creation of a ConfigMap.
func FuzzAnswer(f *testing.F) {
	f.Add(review(f, map[string]any{"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": []byte(`[{"op":"copy","from":"/data","path":"/metadata/labels"}]`)}), true)
	f.Add(review(f, map[string]any{"uid": "u", "status": map[string]any{"code": -7, "message": "\x00"}}), false)
	f.Add(review(f, map[string]any{"uid": "u", "allowed": true, "warnings": []string{"\xff"}, "auditAnnotations": map[string]string{"\n": "\n"}}), true)
	f.Add([]byte(`{"apiVersion":"v1","kind":"Status","code":1}`), true)
	f.Fuzz(func(t *testing.T, data []byte, mutates bool) {
		a, _, err := answered(t, data, mutates)
		if err != nil && err.Error() == "" {
			t.Error("a refusal has no message")
		}
		if _, ok := a.Object.(*corev1.ConfigMap); !ok {
			t.Errorf("the object is a %T", a.Object)
		}
	})
}

// FuzzPatch puts anything in the place of a patch.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(`[{"op":"add","path":"/data/x","value":"y"}]`))
	f.Add([]byte(`[{"op":"remove","path":"/metadata"},{"op":"test","path":"","value":null}]`))
	f.Add([]byte(`[{"op":"copy","from":"","path":"/data"},{"op":"move","from":"/data","path":"/metadata/annotations"}]`))
	jsonPatch := admissionv1.PatchTypeJSONPatch
	f.Fuzz(func(t *testing.T, patch []byte) {
		data, err := json.Marshal(&admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Response: &admissionv1.AdmissionResponse{UID: "u", Allowed: true, Patch: patch, PatchType: &jsonPatch},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, _ = answered(t, data, true)
	})
}

// anything is a schema of whatever there is.
type anything struct{ kinds.Schema }

func (anything) Coerce(kinds.Object) ([]string, error) { return nil, nil }

// TestKindOfCustomObjects stays what a client has made of it, for others to refuse.
func TestKindOfCustomObjects(t *testing.T) {
	r := &kinds.Resource{
		Group: "x.example.org", Version: "v1", Plural: "things", Kind: "Thing", Storage: &kinds.Storage{Key: "things.x.example.org"}, Schema: anything{},
		New: func() kinds.Object { return &unstructured.Unstructured{} },
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "x.example.org/v2", "kind": "Thing", "metadata": map[string]any{"name": "a"}}}
	a := &admission.Attributes{Operation: admission.Update, Resource: r, Object: object}
	v, s, h := &view{a: a}, &shown{target: criteria.Target{Resource: r, Kind: r.GVK()}}, &hook{}
	if err := s.prepare(a); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(s.object), "x.example.org/v1") {
		t.Errorf("the webhook is shown %s", s.object)
	}
	changed, err := (&Mutating{}).apply(t.Context(), h, v, s, []byte(`[{"op":"add","path":"/spec","value":{"n":1}}]`), &notes{h: h, a: a})
	if err != nil || !changed || object.GetAPIVersion() != "x.example.org/v2" || object.Object["spec"] == nil {
		t.Errorf("%t %v: %v", changed, err, object.Object)
	}
}

func TestDryRunsAreRefused(t *testing.T) {
	a, _ := write(t)
	a.DryRun = true
	k := &asker{}
	for _, c := range []struct {
		declared bool
		want     string
	}{
		{true, `admission webhook "h" does not support dry run`},
		{false, `failed calling webhook "h": Webhook SideEffects is nil`},
	} {
		out := k.call(t.Context(), &hook{name: "h", declared: c.declared}, &view{a: a}, &shown{})
		if out.err == nil || out.err.Error() != c.want {
			t.Errorf("%v, want %s", out.err, c.want)
		}
	}
}

// TestVersions: a webhook is asked in the first version of its list that is known, and
// answers in that. Of v1beta1 less is asked.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		versions []string
		want     string
	}{{nil, ""}, {[]string{"v2"}, ""}, {[]string{"v2", "v1beta1", "v1"}, "v1beta1"}, {[]string{"v1", "v1beta1"}, "v1"}} {
		if got := reviewVersion(c.versions); got != c.want {
			t.Errorf("%v: %q", c.versions, got)
		}
	}
	a, _ := write(t)
	s := &shown{target: criteria.Target{Resource: a.Resource, Kind: a.Resource.GVK()}}
	if err := s.prepare(a); err != nil {
		t.Fatal(err)
	}
	_, body, err := s.review(a, "v1beta1")
	if err != nil || !strings.Contains(string(body), `"apiVersion":"admission.k8s.io/v1beta1"`) {
		t.Errorf("%s %v", body, err)
	}
	for text, want := range map[string]string{
		`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"allowed":true,"patch":"W10="}}`: "",
		`{"response":{"allowed":true,"patch":"W10=","patchType":"Other"}}`:                                              "",
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true}}`:                     "converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion",
		`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}`:                                            "webhook response was absent",
	} {
		r, err := decode([]byte(text), "v1beta1")
		var got *answer
		if err == nil {
			got, err = verify(r, "u", "v1beta1", true)
		}
		switch {
		case want == "" && (err != nil || !got.allowed || string(got.patch) != "[]" || got.patchType != admissionv1.PatchTypeJSONPatch):
			t.Errorf("%s: %+v %v", text, got, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s: %v", text, err)
		}
	}
}
