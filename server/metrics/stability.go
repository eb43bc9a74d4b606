package metrics

import (
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/server/release"
)

// stability is the stability level of a metric.
type stability string

// A stable metric keeps its name, its labels and their meaning; a beta metric gets no fewer
// labels; an alpha metric promises nothing.
const (
	alpha  stability = "ALPHA"
	beta   stability = "BETA"
	stable stability = "STABLE"
)

// life is the stage in the life cycle of a metric.
type life struct {
	stability  stability
	deprecated int // minor version of the release that deprecated it; 0: none did
}

// lives are the metrics that are not plain alpha ones, as the oldest release has them.
var lives = map[string]life{
	"apiserver_admission_controller_admission_duration_seconds":    {stability: stable},
	"apiserver_admission_step_admission_duration_seconds":          {stability: stable},
	"apiserver_admission_webhook_admission_duration_seconds":       {stability: stable},
	"apiserver_current_inflight_requests":                          {stability: stable},
	"apiserver_longrunning_requests":                               {stability: stable},
	"apiserver_request_duration_seconds":                           {stability: stable},
	"apiserver_request_total":                                      {stability: stable},
	"apiserver_requested_deprecated_apis":                          {stability: stable},
	"apiserver_response_sizes":                                     {stability: stable},
	"apiserver_storage_objects":                                    {stability: stable},
	"apiserver_storage_size_bytes":                                 {stability: stable},
	"apiserver_flowcontrol_current_executing_requests":             {stability: beta},
	"apiserver_flowcontrol_current_executing_seats":                {stability: beta},
	"apiserver_flowcontrol_current_inqueue_requests":               {stability: beta},
	"apiserver_flowcontrol_dispatched_requests_total":              {stability: beta},
	"apiserver_flowcontrol_nominal_limit_seats":                    {stability: beta},
	"apiserver_flowcontrol_rejected_requests_total":                {stability: beta},
	"apiserver_flowcontrol_request_wait_duration_seconds":          {stability: beta},
	"apiserver_validating_admission_policy_check_duration_seconds": {stability: beta},
	"apiserver_validating_admission_policy_check_total":            {stability: beta},
	"kubernetes_feature_enabled":                                   {stability: beta},
	"registered_metrics_total":                                     {stability: beta},
	"hidden_metrics_total":                                         {stability: beta},
	"disabled_metrics_total":                                       {stability: beta},
	"apiserver_flowcontrol_request_concurrency_limit":              {stability: alpha, deprecated: 30},

	"apiserver_encryption_config_controller_automatic_reload_success_total":  {stability: alpha, deprecated: 30},
	"apiserver_encryption_config_controller_automatic_reload_failures_total": {stability: alpha, deprecated: 30},
	"apiserver_flowcontrol_request_concurrency_in_use":                       {stability: alpha, deprecated: 31},
}

// livesSince133 are the metrics that release.MetricsByGroup changes.
var livesSince133 = map[string]life{
	"apiserver_storage_objects":                   {stability: stable, deprecated: 34},
	"workqueue_adds_total":                        {stability: beta},
	"workqueue_depth":                             {stability: beta},
	"workqueue_longest_running_processor_seconds": {stability: beta},
	"workqueue_queue_duration_seconds":            {stability: beta},
	"workqueue_retries_total":                     {stability: beta},
	"workqueue_unfinished_work_seconds":           {stability: beta},
	"workqueue_work_duration_seconds":             {stability: beta},
}

// grace is the number of releases for which a deprecated metric is still shown by default.
var grace = map[stability]int{alpha: 1, beta: 1, stable: 3}

// hidden reports whether a server of a release does not show a metric unless a flag asks for hidden ones.
func (l life) hidden(v release.Version) bool {
	return l.deprecated != 0 && l.deprecated <= v.Binary().Minor()-grace[l.stability]
}

// marked returns the help of a metric with its stability. Metrics of libraries for any process have none, and packages
// outside the table include it themselves.
func marked(v release.Version, name, help string) string {
	if strings.HasPrefix(help, "[") || plain(name) {
		return help
	}
	l := lifeOf(v, name, help)
	if l.deprecated != 0 {
		help = fmt.Sprintf("(Deprecated from 1.%d) %s", l.deprecated, help)
	}
	return fmt.Sprintf("[%s] %s", l.stability, help)
}

// plain reports whether a metric is one of a library for any process.
func plain(name string) bool {
	return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
}

// lifeOf returns the stage of a metric, by the table or by its help.
func lifeOf(v release.Version, name, help string) life {
	if l, ok := livesSince133[name]; ok && v.Has(release.MetricsByGroup) {
		return l
	}
	if l, ok := lives[name]; ok {
		return l
	}
	for _, s := range []stability{beta, stable} {
		if strings.HasPrefix(help, "["+string(s)+"]") {
			return life{stability: s}
		}
	}
	return life{stability: alpha}
}
