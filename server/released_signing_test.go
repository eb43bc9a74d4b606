package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestSigningRights: a change of the status of a PodCertificateRequest needs the right to sign for its signer.
func TestSigningRights(t *testing.T) {
	t.Parallel()
	const (
		requests = "/apis/certificates.k8s.io/v1beta1/namespaces/default/podcertificaterequests"
		roles    = "/apis/rbac.authorization.k8s.io/v1"
		denied   = `"status":{"conditions":[{"type":"Denied","status":"True","reason":"No","message":"no","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`
		refusal  = `spec.signerName: Forbidden: User \"bob\" is not permitted to \"sign\" for signer \"example.com/s\"`
	)
	s := servertest.Start(t, servertest.Complete(t, "--emulated-version=1.36",
		"--feature-gates=PodCertificateRequest=true", "--runtime-config=certificates.k8s.io/v1beta1/podcertificaterequests=true"))
	for name, signer := range map[string]string{"bob": "example.com/other", "carl": "example.com/s", "dora": "example.com/*"} {
		s.Must("POST", roles+"/clusterroles", `{"metadata":{"name":"`+name+`"},"rules":[
			{"apiGroups":["certificates.k8s.io"],"resources":["podcertificaterequests/status"],"verbs":["patch"]},
			{"apiGroups":["certificates.k8s.io"],"resources":["signers"],"resourceNames":["`+signer+`"],"verbs":["sign"]}]}`)
		s.Must("POST", roles+"/clusterrolebindings", `{"metadata":{"name":"`+name+`"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"`+name+`"},"subjects":[{"kind":"User","name":"`+name+`"}]}`)
	}
	for _, c := range []struct {
		user, refused string
	}{{"bob", refusal}, {"carl", ""}, {"dora", ""}} {
		w := s.Must("POST", requests, `{"metadata":{"name":"`+c.user+`"},"spec":{"signerName":"example.com/s","podName":"p","podUID":"u","serviceAccountName":"a","serviceAccountUID":"b","nodeName":"n","nodeUID":"m",
			"stubPKCS10Request":"MH8wMwIBADAAMCowBQYDK2VwAyEAnGh5Lc/oOAVq1uKBQYtKlywJ6y17NKam4nHCAbxuyDCgADAFBgMrZXADQQBM/AjtjT3f5g7kwXVZ7i6l4DNmtJXfPT5F3rsixT8PYgnBRWlCUXJXi7igjtcS3Kqqt580GhvLvAMm9IFFrQQP"},`+denied+`}`)
		if strings.Contains(string(w), "Denied") {
			t.Errorf("a new request has a status: %s", w)
		}
		// An invalid status is reported before the missing right.
		if bad := s.Do("PATCH", requests+"/"+c.user+"/status", `{"status":{"conditions":[{"type":"Odd"}]}}`, "Content-Type", "application/merge-patch+json", "Impersonate-User", c.user); bad.Code != http.StatusUnprocessableEntity || strings.Contains(bad.Body.String(), "not permitted") {
			t.Errorf("%s, a condition that there is not: %d %s", c.user, bad.Code, bad.Body)
		}
		got := s.Do("PATCH", requests+"/"+c.user+"/status", `{`+denied+`}`, "Content-Type", "application/merge-patch+json", "Impersonate-User", c.user)
		if c.refused == "" && got.Code != http.StatusOK || c.refused != "" && (got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.Body.String(), c.refused)) {
			t.Errorf("%s: %d %s\nwant %s", c.user, got.Code, got.Body, c.refused)
		}
	}
}

// TestNodesReadPodCertificates: a node agent reads the requests for certificates of its own pods.
func TestNodesReadPodCertificates(t *testing.T) {
	t.Parallel()
	const requests = "/apis/certificates.k8s.io/v1beta1/namespaces/default/podcertificaterequests"
	s := servertest.Start(t, servertest.Complete(t, "--emulated-version=1.36",
		"--feature-gates=PodCertificateRequest=true", "--runtime-config=certificates.k8s.io/v1beta1/podcertificaterequests=true"))
	s.Must("POST", requests, `{"metadata":{"name":"a"},"spec":{"signerName":"example.com/s","podName":"p","podUID":"u","serviceAccountName":"a","serviceAccountUID":"b","nodeName":"n","nodeUID":"m",
		"stubPKCS10Request":"MH8wMwIBADAAMCowBQYDK2VwAyEAnGh5Lc/oOAVq1uKBQYtKlywJ6y17NKam4nHCAbxuyDCgADAFBgMrZXADQQBM/AjtjT3f5g7kwXVZ7i6l4DNmtJXfPT5F3rsixT8PYgnBRWlCUXJXi7igjtcS3Kqqt580GhvLvAMm9IFFrQQP"}}`)
	for _, c := range []struct {
		node, path string
		code       int
	}{
		{"n", "/a", http.StatusOK}, {"other", "/a", http.StatusForbidden},
		{"n", "?fieldSelector=spec.nodeName%3Dn", http.StatusOK}, {"n", "", http.StatusForbidden}, {"other", "?fieldSelector=spec.nodeName%3Dn", http.StatusForbidden},
	} {
		if w := s.Do("GET", requests+c.path, "", "Impersonate-User", "system:node:"+c.node, "Impersonate-Group", "system:nodes"); w.Code != c.code {
			t.Errorf("%s reads %q: %d %s, want %d", c.node, c.path, w.Code, w.Body, c.code)
		}
	}
}
