//go:build unix

package cluster_test

import (
	"testing"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// TestParseAudits: events of operations are read, also one behind a line without an end, and nothing else is.
func TestParseAudits(t *testing.T) {
	t.Parallel()
	event := func(id string) string {
		return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"` + id + `","stage":"ResponseComplete","requestURI":"/x","verb":"create","user":{"username":"admin"},` +
			`"objectRef":{"resource":"leases","namespace":"blue","name":"a","apiGroup":"coordination.k8s.io","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":201},"requestObject":{"a":1},"responseObject":{"metadata":{"resourceVersion":"7"}}}` + "\n"
	}
	text := event("op1") + event("7d0b3a52-5a0a-4a32-b2f6-7cf23fd6c1c2") + `{"kind":"Event","apiVersion":"aud` + event("op2") + "not an event\n"
	all := cluster.ParseAudits([]byte(text), 2)
	if len(all) != 2 {
		t.Fatalf("%d events: %v", len(all), all)
	}
	want := history.Audited{ID: "op1", Server: 2, Stage: "ResponseComplete", Level: "RequestResponse", Verb: "create", User: "admin", Key: history.Key{Resource: "leases.coordination.k8s.io", Namespace: "blue", Name: "a"}, Code: 201, Request: true, Response: true, Version: 7}
	if *all[0] != want || all[1].ID != "op2" {
		t.Errorf("%+v, %+v; want %+v", all[0], all[1], want)
	}
}
