package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
)

// requestTimeouts: bad ones are refused, long and zero ones are the server's.
func requestTimeouts(t *testing.T, p *protocol, ns string) {
	path := "/api/v1/namespaces/" + ns + "/configmaps"
	body := want(t, p.raw, 400, http.MethodGet, path+"?timeout=invalid", "", "")
	if !strings.Contains(string(body), "invalid timeout specified in the request URL") {
		t.Errorf("%s", body)
	}
	for _, timeout := range []string{"0s", "3m", "1h", "10s"} {
		want(t, p.raw, 200, http.MethodGet, path+"?timeout="+timeout, "", "")
	}
	// A version that does not come is waited for until the timeout, where that is shorter than
	// the usual wait, which ends with another answer.
	const usual = "Too large resource version"
	if body := want(t, p.raw, 504, http.MethodGet, path+"?timeout=100ms&resourceVersion=99999999", "", ""); strings.Contains(string(body), usual) {
		t.Errorf("a timeout of 100ms ends as none does: %s", body)
	}
	if body := want(t, p.raw, 504, http.MethodGet, path+"?resourceVersion=99999999", "", ""); !strings.Contains(string(body), usual) {
		t.Errorf("without a timeout: %s", body)
	}
}

// namespaces: labels, patches, status, finalizers.
func namespaces(t *testing.T, p *protocol, ns string) {
	all := p.core.Namespaces()
	got, err := all.Patch(t.Context(), ns, types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"testLabel":"testValue","kubernetes.io/metadata.name":"other"}}}`), metav1.PatchOptions{})
	if err != nil || got.Labels["testLabel"] != "testValue" || got.Labels[corev1.LabelMetadataName] != ns {
		t.Errorf("patch: %+v %v", got, err)
	}
	status := fmt.Appendf(nil, `{"metadata":{"annotations":{"e2e-patched-ns-status":%q}},"status":{"conditions":[{"type":"StatusPatch","status":"True","reason":"E2E","message":"Patched"}]}}`, ns)
	got, err = all.Patch(t.Context(), ns, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	if err != nil || len(got.Status.Conditions) != 1 || got.Annotations["e2e-patched-ns-status"] != ns {
		t.Errorf("patch of status: %+v %v", got, err)
	}
	got.Labels["updated"] = "yes"
	if got, err = all.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil || got.Labels["updated"] != "yes" {
		t.Errorf("update: %+v %v", got, err)
	}
	got.Spec.Finalizers = append(got.Spec.Finalizers, "e2e.example.com/fakeFinalizer")
	if got, err = all.Finalize(t.Context(), got, metav1.UpdateOptions{}); err != nil || len(got.Spec.Finalizers) != 2 {
		t.Fatalf("finalize: %+v %v", got, err)
	}
	got.Spec.Finalizers = got.Spec.Finalizers[:1]
	if got, err = all.Finalize(t.Context(), got, metav1.UpdateOptions{}); err != nil || len(got.Spec.Finalizers) != 1 {
		t.Errorf("finalize: %+v %v", got, err)
	}
}

// namespaceContents: a namespace is deleted with its content, and can be recreated.
func namespaceContents(t *testing.T, p *protocol, ns string) {
	for i := range 10 {
		p.configMap(t, ns, fmt.Sprintf("c%d", i), nil)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: podTemplate().Spec}
	if _, err := p.core.Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"a": "b"}}}
	if _, err := p.core.Services(ns).Create(t.Context(), svc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.core.Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.core.ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{}); err == nil || !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		t.Errorf("a create in a namespace that goes: %v", err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, err := p.core.Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the namespace stays: %v", err)
		}
	}
	if _, err := p.core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{"ConfigMaps": "configmaps", "Pods": "pods", "Services": "services"} {
		body := want(t, p.raw, 200, http.MethodGet, "/api/v1/namespaces/"+ns+"/"+path, "", "")
		if !strings.Contains(string(body), `"items":[]`) {
			t.Errorf("%s are left: %s", what, body)
		}
	}
}

// discoveryDocuments: both forms agree, every group version has resources, and the preferred one is served.
func discoveryDocuments(t *testing.T, p *protocol, ns string) {
	client, err := discovery.NewDiscoveryClientForConfig(restConfig(t, p.s, ""))
	if err != nil {
		t.Fatal(err)
	}
	v, err := client.ServerVersion()
	if err != nil || v.Major != "1" || v.Minor != "32" {
		t.Errorf("version: %+v %v", v, err)
	}
	groups, resources, err := client.ServerGroupsAndResources() // aggregated
	if err != nil {
		t.Fatal(err)
	}
	old := client.WithLegacy()
	oldGroups, err := old.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	preferred := map[string]string{}
	for _, g := range oldGroups.Groups {
		preferred[g.Name] = g.PreferredVersion.GroupVersion
		found := false
		for _, v := range g.Versions {
			found = found || v == g.PreferredVersion
		}
		if !found {
			t.Errorf("group %q prefers %v of %v", g.Name, g.PreferredVersion, g.Versions)
		}
	}
	for _, g := range groups {
		if preferred[g.Name] != g.PreferredVersion.GroupVersion && !strings.HasSuffix(g.Name, ".example.com") { // other cases define those
			t.Errorf("group %q: %q preferred in one form, %q in the other", g.Name, g.PreferredVersion.GroupVersion, preferred[g.Name])
		}
	}
	for _, list := range resources {
		if strings.Contains(list.GroupVersion, ".example.com") {
			continue
		}
		same, err := old.ServerResourcesForGroupVersion(list.GroupVersion)
		if err != nil || len(same.APIResources) != len(list.APIResources) || len(list.APIResources) == 0 {
			t.Errorf("%s: %d resources in one form, %d in the other: %v", list.GroupVersion, len(list.APIResources), len(same.APIResources), err)
		}
		for _, r := range list.APIResources {
			if r.Kind == "" || len(r.Verbs) == 0 || r.SingularName == "" && !strings.Contains(r.Name, "/") {
				t.Errorf("%s: %+v", list.GroupVersion, r)
			}
		}
	}
	if _, err := client.ServerResourcesForGroupVersion("missing.example.com/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("a group that is not there: %v", err)
	}
}

// healthChecks: whole, in pieces, and without some.
func healthChecks(t *testing.T, p *protocol, ns string) {
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		if body := want(t, p.raw, 200, http.MethodGet, path, "", ""); string(body) != "ok" {
			t.Errorf("%s: %q", path, body)
		}
		body := string(want(t, p.raw, 200, http.MethodGet, path+"?verbose", "", ""))
		name := path[1:]
		if !strings.Contains(body, "[+]ping ok\n") || !strings.HasSuffix(strings.TrimSpace(body), name+" check passed") {
			t.Errorf("%s?verbose: %s", path, body)
		}
		for _, line := range strings.Split(body, "\n") {
			check, ok := strings.CutPrefix(line, "[+]")
			if !ok {
				continue
			}
			check = strings.TrimSuffix(check, " ok")
			want(t, p.raw, 200, http.MethodGet, path+"/"+check, "", "")
			without := string(want(t, p.raw, 200, http.MethodGet, path+"?verbose&exclude="+check, "", ""))
			if !strings.Contains(without, "[+]"+check+" excluded: ok\n") {
				t.Errorf("%s?exclude=%s: %s", path, check, without)
			}
		}
		want(t, p.raw, 404, http.MethodGet, path+"/nothing", "", "")
	}
	var st metav1.Status
	if err := json.Unmarshal(want(t, p.raw, 404, http.MethodGet, "/api/v1/namespaces/"+ns+"/nothing", "", ""), &st); err != nil || st.Reason != metav1.StatusReasonNotFound {
		t.Errorf("an unknown resource: %+v %v", st, err)
	}
}
