package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestEmptyTimes: release 1.32 writes an empty creationTimestamp as null wherever an object has one, and its creator owns
// that field. Later releases do neither, in any form and in any answer.
func TestEmptyTimes(t *testing.T) {
	const (
		pods  = `{"metadata":{"labels":{"a":"b"},"creationTimestamp":null},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":{"creationTimestamp":null},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}}]`
		claim = `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`
		in    = "/api/v1/namespaces/default/"
		apps  = "/apis/apps/v1/namespaces/default/"
		batch = "/apis/batch/v1/namespaces/default/"
		table = "application/json;as=Table;v=v1;g=meta.k8s.io"
		part  = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	)
	type request struct {
		method, path, body, accept string
		nulls, owned               int // in release 1.32
	}
	requests := []request{
		{"POST", in + "serviceaccounts", `{"metadata":{"name":"default"}}`, "", 0, 0},
		{"POST", in + "replicationcontrollers", `{"metadata":{"name":"rc"},"spec":{"replicas":0,"selector":{"a":"b"},"template":` + pods + `}}}}`, "", 2, 2},
		{"POST", apps + "deployments", `{"metadata":{"name":"d"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":` + pods + `}}}}`, "", 2, 1},
		{"POST", apps + "statefulsets", `{"metadata":{"name":"s"},"spec":{"replicas":0,"serviceName":"s","selector":{"matchLabels":{"a":"b"}},"template":` + pods + `}},"volumeClaimTemplates":[` + claim + `]}}`, "", 3, 1},
		{"POST", batch + "cronjobs", `{"metadata":{"name":"cj"},"spec":{"schedule":"0 0 1 1 *","jobTemplate":{"metadata":{"creationTimestamp":null},"spec":{"template":` + pods + `,"restartPolicy":"Never"}}}}}}`, "", 3, 1},
		{"POST", batch + "jobs?dryRun=All", `{"metadata":{"name":"j"},"spec":{"suspend":true,"template":` + pods + `,"restartPolicy":"Never"}}}}`, "", 2, 1},
		{"POST", in + "podtemplates", `{"metadata":{"name":"t"},"template":` + pods + `}}}`, "", 2, 1},
		{"POST", in + "pods", `{"metadata":{"name":"p"},"spec":` + strings.SplitN(pods, `"spec":`, 2)[1] + `}}`, "", 1, 1},
		{"PATCH", apps + "deployments/d", `{"metadata":{"labels":{"x":"y"}}}`, "", 2, 1},
		{"GET", apps + "deployments/d", "", "", 2, 1},
		{"GET", apps + "deployments/d", "", "application/yaml", 2, 1},
		{"GET", apps + "deployments", "", "", 2, 1},
		{"GET", apps + "deployments?includeObject=Object&fieldSelector=metadata.name=d", "", table, 2, 1},
		{"GET", apps + "deployments?includeObject=Metadata", "", table, 0, 1},
		{"GET", apps + "deployments", "", part, 0, 1},
		{"GET", apps + "deployments/d/scale", "", "", 0, 0},
		{"GET", apps + "deployments?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", "", 4, 1},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`, "", 1, 0},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`, "", 1, 0},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"x"}}`, "", 1, 0},
		{"POST", in + "serviceaccounts", `{"metadata":{"name":"a"}}`, "", 0, 0},
		{"POST", in + "serviceaccounts/a/token", `{}`, "", 0, 0},
		{"POST", in + "pods/p/eviction", `{"metadata":{"name":"p","creationTimestamp":null}}`, "", 0, 0},
		{"DELETE", apps + "statefulsets/s?propagationPolicy=Foreground", "", "", 3, 1},
	}
	for _, v := range []string{"1.32", "1.34", "1.36"} {
		s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+v), servertest.Idle)
		for _, r := range requests {
			header := []string{"Accept", r.accept}
			if r.method == http.MethodPatch {
				header = append(header, "Content-Type", "application/merge-patch+json")
			}
			answer := s.Do(r.method, r.path, r.body, header...)
			text := strings.ReplaceAll(answer.Body.String(), "creationTimestamp: null", `"creationTimestamp":null`)
			nulls, owned := strings.Count(text, `"creationTimestamp":null`), strings.Count(text, "f:creationTimestamp")
			if v != "1.32" {
				r.nulls, r.owned = 0, 0
			}
			if answer.Code >= 300 || nulls != r.nulls || owned != r.owned {
				t.Errorf("%s: %s %s %s: %d, %d empty times that %d fields are owned of, want %d and %d: %s", v, r.method, r.path, r.accept, answer.Code, nulls, owned, r.nulls, r.owned, text)
			}
		}
	}
}
