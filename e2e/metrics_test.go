package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// series is one metric of a scrape.
type series struct {
	kind   string
	labels []string            // names, sorted
	values map[string][]string // by label name
}

var sample = regexp.MustCompile(`^([a-zA-Z_:]+)(?:\{(.*)\})? (\S+)$`)
var label = regexp.MustCompile(`([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"`)

// scrape reads /metrics.
func scrape(t *testing.T, text io.Reader) map[string]*series {
	t.Helper()
	all := map[string]*series{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			all[name] = &series{kind: kind, values: map[string][]string{}}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		s := all[m[1]]
		if s == nil {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base, ok := strings.CutSuffix(m[1], suffix); ok && all[base] != nil {
					s = all[base]
				}
			}
		}
		if s == nil {
			t.Fatalf("%s has no type", m[1])
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" && !slices.Contains(s.labels, l[1]) {
				s.labels = append(s.labels, l[1])
			}
			s.values[l[1]] = append(s.values[l[1]], l[2])
		}
	}
	for _, s := range all {
		slices.Sort(s.labels)
	}
	return all
}

// TestMetrics pins the names, types and labels that dashboards and alerts rely on,
// and that what strangers send does not become a label.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	do := func(token, method, path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	drain := func(r *http.Response) string {
		t.Helper()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	admin := harness.AdminToken
	limitRanges := "/api/v1/namespaces/default/limitranges"
	drain(do(admin, "POST", limitRanges, `{"metadata":{"name":"m"}}`))
	drain(do(admin, "POST", limitRanges+"?dryRun=All", `{"metadata":{"name":"n"}}`))
	drain(do(admin, "GET", limitRanges, ""))
	drain(do(admin, "GET", limitRanges+"?watch=1&fieldSelector=metadata.name=m&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", ""))
	drain(do(admin, "POST", "/api/v1/namespaces/nowhere/limitranges", `{"metadata":{"name":"m"}}`)) // refused by NamespaceLifecycle
	if got := do(admin, "GET", "/api/v1/componentstatuses/nothing", "").Header.Get("Warning"); got != `299 - "v1 ComponentStatus is deprecated in v1.19+"` {
		t.Errorf("Warning: %s", got)
	}
	drain(do("", "GET", "/apis/stranger-group/stranger-version/stranger-resource", ""))
	drain(do("", "STRANGE", "/stranger-path?dryRun=stranger-run", ""))
	drain(do("stranger-token", "GET", "/version", ""))
	drain(do("", "GET", "/readyz", ""))

	body := ""
	// A watch is over for its client before it is for the server.
	const over = `apiserver_longrunning_requests{component="apiserver",group="",resource="limitranges",scope="namespace",subresource="",verb="WATCH",version="v1"} 0`
	eventually(t, over, func() bool {
		resp := do(admin, "GET", "/metrics", "")
		if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
			t.Errorf("Content-Type: %s", got)
		}
		body = drain(resp)
		return strings.Contains(body, over+"\n")
	})
	all := scrape(t, strings.NewReader(body))
	placed := "component group resource scope subresource verb version"
	for _, want := range []struct{ name, kind, labels string }{
		{"apiserver_request_total", "counter", "code component dry_run group resource scope subresource verb version"},
		{"apiserver_request_duration_seconds", "histogram", "component dry_run group resource scope subresource verb version"},
		{"apiserver_request_sli_duration_seconds", "histogram", placed},
		{"apiserver_response_sizes", "histogram", placed},
		{"apiserver_longrunning_requests", "gauge", placed},
		{"apiserver_current_inflight_requests", "gauge", "request_kind"},
		{"apiserver_selfrequest_total", "counter", "resource subresource verb"},
		{"apiserver_requested_deprecated_apis", "gauge", "group removed_release resource subresource version"},
		{"apiserver_tls_handshake_errors_total", "counter", ""},
		{"apiserver_panics_total", "counter", ""},
		{"apiserver_watch_events_total", "counter", "group kind version"},
		{"apiserver_watch_events_sizes", "histogram", "group kind version"},
		{"apiserver_watch_list_duration_seconds", "histogram", "group resource scope version"},
		{"apiserver_watch_cache_resource_version", "gauge", "resource"},
		{"apiserver_storage_objects", "gauge", "resource"},
		{"workqueue_depth", "gauge", "name"},
		{"workqueue_adds_total", "counter", "name"},
		{"workqueue_queue_duration_seconds", "histogram", "name"},
		{"workqueue_work_duration_seconds", "histogram", "name"},
		{"workqueue_retries_total", "counter", "name"},
		{"workqueue_unfinished_work_seconds", "gauge", "name"},
		{"workqueue_longest_running_processor_seconds", "gauge", "name"},
		{"apiserver_admission_step_admission_duration_seconds", "histogram", "operation rejected type"},
		{"apiserver_admission_controller_admission_duration_seconds", "histogram", "name operation rejected type"},
		{"apiserver_authorization_attempts_total", "counter", "result"},
		{"apiserver_authorization_duration_seconds", "histogram", "result"},
		{"authentication_attempts", "counter", "result"},
		{"authentication_duration_seconds", "histogram", "result"},
		{"authenticated_user_requests", "counter", "username"},
		{"apiserver_client_certificate_expiration_seconds", "histogram", ""},
		{"apiserver_flowcontrol_dispatched_requests_total", "counter", "flow_schema priority_level"},
		{"apiserver_flowcontrol_current_executing_requests", "gauge", "flow_schema priority_level"},
		{"pod_security_evaluations_total", "counter", "decision mode policy_level policy_version request_operation resource subresource"},
		{"pod_security_exemptions_total", "counter", "request_operation resource subresource"},
		{"kubernetes_build_info", "gauge", "build_date compiler git_commit git_tree_state git_version go_version major minor platform"},
		{"kubernetes_feature_enabled", "gauge", "name stage"},
		{"rowlock_watchers", "gauge", "resource"},
		{"rowlock_store_revision", "gauge", ""},
		{"rowlock_store_compacted_revision", "gauge", ""},
		{"rowlock_cache_plain_bytes", "gauge", ""},
		{"rowlock_store_compacted_rows_total", "counter", ""},
		{"rowlock_store_expired_objects_total", "counter", ""},
		{"rowlock_store_lag_revisions", "gauge", ""},
		{"rowlock_store_lag_seconds", "gauge", ""},
		{"rowlock_store_feed_reconnects_total", "counter", ""},
		{"rowlock_store_feed_reloads_total", "counter", ""},
		{"rowlock_store_commit_duration_seconds", "histogram", "result"},
		{"rowlock_store_commit_writes", "histogram", ""},
		{"rowlock_store_operations_total", "counter", ""},
		{"rowlock_store_query_duration_seconds", "histogram", "query"},
		{"rowlock_store_rows", "gauge", "state"},
		{"rowlock_store_bytes", "gauge", ""},
		{"rowlock_store_relaxed_writes_total", "counter", ""},
		{"rowlock_store_relaxed_sync_failures_total", "counter", ""},
		{"rowlock_store_unsynced_seconds", "gauge", ""},
		{"go_goroutines", "gauge", ""},
		{"process_resident_memory_bytes", "gauge", ""},
		{"rowlock_process_anonymous_memory_bytes", "gauge", ""},
		{"process_start_time_seconds", "gauge", ""},
	} {
		got := all[want.name]
		if got == nil {
			t.Errorf("there is no %s", want.name)
			continue
		}
		if labels := strings.Join(got.labels, " "); got.kind != want.kind || labels != want.labels {
			t.Errorf("%s: %s with %q, want %s with %q", want.name, got.kind, labels, want.kind, want.labels)
		}
	}
	if i := strings.Index(body, "tranger"); i >= 0 {
		t.Errorf("a stranger's text is among the metrics: ...%s", body[max(0, i-200):i+20])
	}
	for _, want := range []string{
		`apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="limitranges",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		`apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="limitranges",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="limitranges",scope="namespace",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1`,
		`apiserver_watch_list_duration_seconds_count{group="",resource="limitranges",scope="namespace",version="v1"} 1`,
		`apiserver_admission_controller_admission_duration_seconds_count{name="NamespaceLifecycle",operation="CREATE",rejected="true",type="admit"} 1`,
		`kubernetes_feature_enabled{name="CBORServingAndStorage",stage="ALPHA"} 0`,
	} {
		if !strings.Contains(body, want+"\n") {
			name, _, _ := strings.Cut(want, "{")
			var near []string
			for line := range strings.SplitSeq(body, "\n") {
				if strings.HasPrefix(line, name) && len(near) < 12 && !strings.Contains(line, "_bucket") {
					near = append(near, line)
				}
			}
			t.Errorf("no %s\namong\n%s", want, strings.Join(near, "\n"))
		}
	}
	if !regexp.MustCompile(`(?m)^apiserver_watch_events_total\{group="",kind="LimitRange",version="v1"\} [2-3]$`).MatchString(body) {
		t.Error("an object and one or two bookmarks were sent to a watcher, and not counted")
	}
	slis := drain(do(admin, "GET", "/metrics/slis", ""))
	if !strings.Contains(slis, fmt.Sprintf("kubernetes_healthcheck{name=%q,type=%q} 1\n", "etcd", "readyz")) {
		t.Errorf("/metrics/slis: %s", slis)
	}
}
