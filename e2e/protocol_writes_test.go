package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// validationCase is one body: its code, that of Strict, and the warnings of Warn, each
// of which Strict names.
type validationCase struct {
	method, path, contentType, body string
	code, strict                    int
	warnings                        []string
}

func (p *protocol) validate(t *testing.T, tc validationCase) {
	t.Helper()
	sep := "?"
	if strings.Contains(tc.path, "?") {
		sep = "&"
	}
	for _, mode := range []string{"Ignore", "Warn", "", "Strict"} {
		code, header, answer, err := p.raw.send(t.Context(), tc.method, tc.path+sep+"dryRun=All&fieldValidation="+mode, tc.contentType, tc.body)
		if err != nil {
			t.Fatal(err)
		}
		wantCode, wantWarnings := tc.code, ""
		switch mode {
		case "Strict":
			wantCode = tc.strict
		case "Warn", "":
			var lines []string
			for _, w := range tc.warnings {
				lines = append(lines, "299 - "+strconv.Quote(w))
			}
			wantWarnings = strings.Join(lines, ", ")
		}
		if got := strings.Join(header.Values("Warning"), ", "); code != wantCode || got != wantWarnings {
			t.Errorf("%s %s %q, mode %q: %d [%s], want %d [%s]\n%s", tc.method, tc.contentType, tc.body, mode, code, got, wantCode, wantWarnings, answer)
		}
		if mode != "Strict" || code < 400 {
			continue
		}
		var st metav1.Status
		if err := json.Unmarshal(answer, &st); err != nil {
			t.Fatal(err)
		}
		for _, w := range tc.warnings {
			if !strings.Contains(st.Message, w) {
				t.Errorf("%s %q, Strict: %q does not say %q", tc.method, tc.body, st.Message, w)
			}
		}
	}
}

const (
	jsonType  = "application/json"
	yamlType  = "application/yaml"
	mergeType = "application/merge-patch+json"
	smpType   = "application/strategic-merge-patch+json"
	patchType = "application/json-patch+json"
	applyType = "application/apply-patch+yaml"
)

// fieldValidation: unknown and duplicate fields of built-in kinds, in every body.
func fieldValidation(t *testing.T, p *protocol, ns string) {
	all := "/apis/apps/v1/namespaces/" + ns + "/deployments"
	one, applied := all+"/d", all+"/d?fieldManager=me&force=true"
	const rest = `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	deployment := func(name, metadata, spec string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q%s},"spec":{%s%s}}`, name, metadata, spec, rest)
	}
	yaml := func(spec string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {" + spec + "}\n"
	}
	want(t, p.raw, 201, http.MethodPost, all, jsonType, deployment("d", "", ""))
	unknown, duplicate := []string{`unknown field "spec.foo"`}, []string{`duplicate field "spec.paused"`}
	twice := []string{`line 4: key "paused" already set in map`}
	for _, tc := range []validationCase{
		{"POST", all, jsonType, deployment("e", "", ""), 201, 201, nil},
		{"POST", all, jsonType, deployment("e", "", `"foo":1,`), 201, 400, unknown},
		{"POST", all, jsonType, deployment("e", `,"foo":1`, ""), 201, 400, []string{`unknown field "metadata.foo"`}},
		{"POST", all, jsonType, deployment("e", "", `"paused":true,"paused":false,`), 201, 400, duplicate},
		{"PUT", one, jsonType, deployment("d", "", `"foo":1,`), 200, 400, unknown},
		{"PUT", one, yamlType, yaml("foo: 1, " + rest), 200, 400, unknown},
		{"PUT", one, yamlType, yaml("paused: true, paused: false, " + rest), 200, 400, twice},
		{"PATCH", one, mergeType, `{"spec":{"foo":1}}`, 200, 422, unknown},
		{"PATCH", one, mergeType, `{"spec":{"paused":true,"paused":false}}`, 200, 422, duplicate},
		{"PATCH", one, smpType, `{"spec":{"foo":1}}`, 200, 422, unknown},
		{"PATCH", one, patchType, `[{"op":"add","path":"/spec/foo","value":1}]`, 200, 422, unknown},
		{"PATCH", applied, applyType, yaml("foo: 1"), 500, 500, nil},
		{"PATCH", applied, applyType, yaml("paused: true, paused: false"), 200, 400, twice},
	} {
		p.validate(t, tc)
	}
	want(t, p.raw, 422, http.MethodPost, all+"?fieldValidation=Perhaps", jsonType, deployment("e", "", ""))
}

// deleteCollections: by selectors, in a dry run, with a limit, and only in the namespace.
func deleteCollections(t *testing.T, p *protocol, ns string) {
	maps := p.core.ConfigMaps(ns)
	count := func() int {
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	for i := range 6 {
		p.configMap(t, ns, fmt.Sprintf("d%d", i), map[string]string{"even": strconv.FormatBool(i%2 == 0)})
	}
	for _, tc := range []struct {
		options metav1.DeleteOptions
		list    metav1.ListOptions
		left    int
	}{
		{metav1.DeleteOptions{DryRun: []string{"All"}}, metav1.ListOptions{}, 6},
		{metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "even=perhaps"}, 6},
		{metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "even=true", Limit: 1}, 5},
		{metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "even=true"}, 3},
		{metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=d1"}, 2},
		{metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, metav1.ListOptions{}, 2}, // they wait for a collector
	} {
		if err := maps.DeleteCollection(t.Context(), tc.options, tc.list); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != tc.left {
			t.Errorf("%+v %+v leaves %d, want %d", tc.options, tc.list, n, tc.left)
		}
	}
	path := "/api/v1/namespaces/" + ns + "/configmaps"
	want(t, p.raw, 422, http.MethodDelete, path+"?dryRun=Perhaps", "", "")
	want(t, p.raw, 405, http.MethodDelete, "/api/v1/configmaps", "", "")
}

// deleteOptions: preconditions, what dependents are to become, finalizers.
func deleteOptions(t *testing.T, p *protocol, ns string) {
	maps := p.core.ConfigMaps(ns)
	cm := p.configMap(t, ns, "x", nil)
	other, stale := types.UID("other"), "1"
	for _, pre := range []*metav1.Preconditions{{UID: &other}, {ResourceVersion: &stale}} {
		if err := maps.Delete(t.Context(), "x", metav1.DeleteOptions{Preconditions: pre}); !apierrors.IsConflict(err) {
			t.Errorf("%+v: %v", pre, err)
		}
	}
	if err := maps.Delete(t.Context(), "x", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &cm.UID, ResourceVersion: &cm.ResourceVersion}}); err != nil {
		t.Error(err)
	}
	for policy, finalizer := range map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
	} {
		name := strings.ToLower(string(policy))
		p.configMap(t, ns, name, nil)
		if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		waiting, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || waiting.DeletionTimestamp == nil || len(waiting.Finalizers) != 1 || waiting.Finalizers[0] != finalizer {
			t.Fatalf("%s: %+v %v", policy, waiting, err)
		}
		waiting.Finalizers = append(waiting.Finalizers, "example.com/late")
		if _, err := maps.Update(t.Context(), waiting, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("a finalizer that comes too late: %v", err)
		}
		waiting.Finalizers = nil
		if _, err := maps.Update(t.Context(), waiting, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := maps.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after its last finalizer: %v", err)
		}
	}
}

// noOps: what changes nothing keeps the version, and is no event.
func noOps(t *testing.T, p *protocol, ns string) {
	maps := p.core.ConfigMaps(ns)
	cm := p.configMap(t, ns, "x", map[string]string{"a": "b"})
	w := p.watch(t.Context(), t, ns, metav1.ListOptions{ResourceVersion: cm.ResourceVersion})
	for _, patch := range []struct {
		of   types.PatchType
		body string
	}{
		{types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`},
		{types.StrategicMergePatchType, `{"metadata":{"labels":{"a":"b"}}}`},
		{types.JSONPatchType, `[{"op":"test","path":"/metadata/labels/a","value":"b"},{"op":"replace","path":"/metadata/labels/a","value":"b"}]`},
		{types.JSONPatchType, `[]`},
	} {
		if got, err := maps.Patch(t.Context(), "x", patch.of, []byte(patch.body), metav1.PatchOptions{}); err != nil || got.ResourceVersion != cm.ResourceVersion {
			t.Errorf("%s %s: %v %v", patch.of, patch.body, got, err)
		}
	}
	if got, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil || got.ResourceVersion != cm.ResourceVersion {
		t.Errorf("update: %v %v", got, err)
	}
	p.change(t, ns, "x", "b", "1")
	if got := events(t, w, 1); got[0] != "MODIFIED x=1" {
		t.Errorf("the first change: %q", got)
	}
}

// concurrentWriters: no update is lost, whether it asks for a version or is a patch.
func concurrentWriters(t *testing.T, p *protocol, ns string) {
	maps := p.core.ConfigMaps(ns)
	p.configMap(t, ns, "x", nil)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 5 {
				key := fmt.Sprintf("w%d-%d", w, i)
				write := func() error {
					_, err := maps.Patch(t.Context(), "x", types.StrategicMergePatchType, fmt.Appendf(nil, `{"data":{%q:"1"}}`, key), metav1.PatchOptions{})
					return err
				}
				if w%2 != 0 {
					write = func() error {
						cm, err := maps.Get(t.Context(), "x", metav1.GetOptions{})
						if err != nil {
							return err
						}
						if cm.Data == nil {
							cm.Data = map[string]string{}
						}
						cm.Data[key] = "1"
						_, err = maps.Update(t.Context(), cm, metav1.UpdateOptions{})
						return err
					}
				}
				err := write()
				for end := time.Now().Add(patience); apierrors.IsConflict(err) && time.Now().Before(end); {
					err = write() // each time, another client has written
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var cm *corev1.ConfigMap
	var err error
	if cm, err = maps.Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	for w := range 8 {
		for i := range 5 {
			if cm.Data[fmt.Sprintf("w%d-%d", w, i)] != "1" {
				t.Errorf("write %d of writer %d is lost", i, w)
			}
		}
	}
}
