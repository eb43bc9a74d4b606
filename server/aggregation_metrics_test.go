package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestMetricsOfAPIServices: the series of aggregated versions go with their APIServices, even if no client reads metrics.
func TestMetricsOfAPIServices(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"1.32", "1.36"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+release))
			groups := func() int {
				families, err := s.Metrics.Registry.Gather()
				if err != nil {
					t.Fatal(err)
				}
				found := map[string]bool{}
				for _, f := range families {
					for _, m := range f.Metric {
						for _, l := range m.Label {
							if l.GetName() == "group" && strings.HasPrefix(l.GetValue(), "gone") {
								found[l.GetValue()] = true
							}
						}
					}
				}
				return len(found)
			}
			const services = "/apis/apiregistration.k8s.io/v1/apiservices"
			request := func(group string) int { return s.Do("GET", "/apis/"+group+"/v1/things?watch=1", "").Code }
			for i := range 40 {
				group := fmt.Sprintf("gone%d.example", i)
				s.Must("POST", services, fmt.Sprintf(`{"metadata":{"name":"v1.%s"},"spec":{"group":%q,"version":"v1","groupPriorityMinimum":1000,"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"gone","port":443}}}`, group, group))
				servertest.Eventually(t, func() bool { return request(group) == http.StatusServiceUnavailable })
				if i == 0 && groups() == 0 {
					t.Fatal("a request to an aggregated server has no series")
				}
				s.Must("DELETE", services+"/v1."+group, "")
				servertest.Eventually(t, func() bool { return request(group) == http.StatusNotFound })
			}
			if n := groups(); n > 20 {
				t.Errorf("%d of 40 groups that are gone have series", n)
			}
			s.Must("GET", "/metrics", "")
			if n := groups(); n > 0 {
				t.Errorf("%d groups that are gone have series after metrics were read", n)
			}
		})
	}
}
