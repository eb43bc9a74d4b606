package batch

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // time zones are known wherever the server runs

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// maxCronJobName leaves room for the suffix of the names of its Jobs.
const maxCronJobName = 52

// CronJob returns the strategy of CronJobs.
func CronJob(on kinds.Feature) kinds.Strategy {
	r := rulesFor(on)
	return kinds.Typed[*batchv1.CronJob]{
		ValidateName:     apivalidation.NameIsDNSSubdomain,
		Default:          r.defaultCronJob,
		PrepareForCreate: func(c *batchv1.CronJob) { r.pods.DropDisabled(&c.Spec.JobTemplate.Spec.Template.Spec, nil) },
		PrepareForUpdate: func(c, old *batchv1.CronJob) {
			r.pods.DropDisabled(&c.Spec.JobTemplate.Spec.Template.Spec, &old.Spec.JobTemplate.Spec.Template.Spec)
		},
		Counted:             func(c *batchv1.CronJob) []any { return []any{c.Spec} },
		Validate:            r.validateCronJob,
		ValidateUpdate:      r.validateCronJobUpdate,
		Warnings:            r.cronJobWarnings,
		UnconditionalUpdate: true,
		Status:              &kinds.Status[*batchv1.CronJob]{Meta: &kinds.MetaRules{AnyFinalizer: true}},
	}.Strategy()
}

// CronJobColumns is their Table form.
var CronJobColumns = columns.Of(cronJobCells, append([]columns.Column{
	columns.Name(),
	columns.Text("Schedule", batchv1.CronJobSpec{}.SwaggerDoc()["schedule"]),
	columns.Text("Timezone", batchv1.CronJobSpec{}.SwaggerDoc()["timeZone"]),
	columns.Flag("Suspend", batchv1.CronJobSpec{}.SwaggerDoc()["suspend"]),
	columns.Number("Active", batchv1.CronJobStatus{}.SwaggerDoc()["active"]),
	columns.Text("Last Schedule", batchv1.CronJobStatus{}.SwaggerDoc()["lastScheduleTime"]),
	columns.Age(),
}, append(columns.Containers(), columns.Wide(columns.Text("Selector", batchv1.JobSpec{}.SwaggerDoc()["selector"])))...)...)

func cronJobCells(c *batchv1.CronJob, now time.Time) []any {
	last := "<none>"
	if t := c.Status.LastScheduleTime; t != nil {
		last = columns.Since(*t, now)
	}
	zone := "<none>"
	if c.Spec.TimeZone != nil {
		zone = *c.Spec.TimeZone
	}
	suspend := "<unset>"
	if s := c.Spec.Suspend; s != nil {
		suspend = "False"
		if *s {
			suspend = "True"
		}
	}
	names, images := columns.ContainerCells(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
	return []any{
		c.Name, c.Spec.Schedule, zone, suspend, int64(len(c.Status.Active)), last,
		columns.Since(c.CreationTimestamp, now), names, images, columns.LongSelector(c.Spec.JobTemplate.Spec.Selector),
	}
}

func (r jobRules) defaultCronJob(obj *batchv1.CronJob) {
	s := &obj.Spec
	r.pods.DefaultTemplate(&s.JobTemplate.Spec.Template)
	defaultFailurePolicy(s.JobTemplate.Spec.PodFailurePolicy)
	s.ConcurrencyPolicy = cmp.Or(s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	rules.DefaultTo(&s.Suspend, false)
	rules.DefaultTo(&s.SuccessfulJobsHistoryLimit, 3)
	rules.DefaultTo(&s.FailedJobsHistoryLimit, 1)
}

func (r jobRules) validateCronJob(c *batchv1.CronJob) field.ErrorList {
	o := r.pods.TemplateOptions(&c.Spec.JobTemplate.Spec.Template, nil)
	errs := r.validateCronJobSpec(&c.Spec, nil, o)
	return rules.InvalidIf(errs, len(c.Name) > maxCronJobName, field.NewPath("metadata", "name"), c.Name, "must be no more than 52 characters")
}

func (r jobRules) validateCronJobUpdate(c, old *batchv1.CronJob) field.ErrorList {
	o := r.pods.TemplateOptions(&c.Spec.JobTemplate.Spec.Template, &old.Spec.JobTemplate.Spec.Template)
	return r.validateCronJobSpec(&c.Spec, &old.Spec, o)
}

func (r jobRules) validateCronJobSpec(s, old *batchv1.CronJobSpec, o podspec.Options) field.ErrorList {
	path := field.NewPath("spec")
	errs := r.validateSchedule(s, old, path.Child("schedule"))
	errs = append(errs, rules.NotNegativePtr(s.StartingDeadlineSeconds, path.Child("startingDeadlineSeconds"))...)
	if old == nil || !rules.Same(old.TimeZone, s.TimeZone) {
		errs = append(errs, validateZone(s.TimeZone, path.Child("timeZone"))...)
	}
	if s.ConcurrencyPolicy == "" {
		errs = append(errs, field.Required(path.Child("concurrencyPolicy"), ""))
	} else {
		errs = append(errs, rules.OneOf(s.ConcurrencyPolicy, path.Child("concurrencyPolicy"),
			batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	}
	errs = append(errs, validateJobTemplate(&s.JobTemplate.Spec, path.Child("jobTemplate", "spec"), o)...)
	errs = append(errs, rules.NotNegativePtr(s.SuccessfulJobsHistoryLimit, path.Child("successfulJobsHistoryLimit"))...)
	return append(errs, rules.NotNegativePtr(s.FailedJobsHistoryLimit, path.Child("failedJobsHistoryLimit"))...)
}

// The selectors of a CronJob's Jobs are always generated.
func validateJobTemplate(s *batchv1.JobSpec, path *field.Path, o podspec.Options) field.ErrorList {
	errs := validateJobSpec(s, path, o)
	errs = rules.InvalidIf(errs, s.Selector != nil, path.Child("selector"), s.Selector, "`selector` will be auto-generated")
	if rules.Value(s.ManualSelector) {
		errs = append(errs, field.NotSupported(path.Child("manualSelector"), s.ManualSelector, []string{"nil", "false"}))
	}
	return errs
}

// scheduleFault validates a schedule. The library panics over some schedules that cannot be read: the
// client gets the same refusal for them, in every release.
func scheduleFault(schedule string) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("invalid schedule format: %v", fault)
		}
	}()
	_, err = cron.ParseStandard(schedule)
	return err
}

func (r jobRules) validateSchedule(s, old *batchv1.CronJobSpec, path *field.Path) field.ErrorList {
	if s.Schedule == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if err := scheduleFault(s.Schedule); err != nil {
		errs = append(errs, field.Invalid(path, s.Schedule, err.Error()))
	}
	if !strings.Contains(s.Schedule, "TZ") {
		return errs
	}
	switch kept := old != nil && strings.Contains(old.Schedule, "TZ"); {
	case !kept:
		errs = append(errs, field.Invalid(path, s.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	case s.TimeZone != nil:
		errs = append(errs, field.Invalid(path, s.Schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
	}
	return errs
}

// zonePart is one part of a time zone's name, by the rules of the zone database;
// digits and + are in some old names.
var zonePart = regexp.MustCompile(`^[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}$`)

func validateZone(zone *string, path *field.Path) field.ErrorList {
	if zone == nil {
		return nil
	}
	if *zone == "" {
		return field.ErrorList{field.Invalid(path, zone, "timeZone must be nil or non-empty string")}
	}
	for _, part := range strings.Split(*zone, "/") {
		if part == "." || part == ".." || !zonePart.MatchString(part) {
			return field.ErrorList{field.Invalid(path, zone, "unknown time zone "+*zone)}
		}
	}
	errs := rules.InvalidIf(nil, strings.EqualFold(*zone, "Local"), path, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
	if _, err := time.LoadLocation(*zone); err != nil {
		errs = append(errs, field.Invalid(path, zone, err.Error()))
	}
	return errs
}

func (r jobRules) cronJobWarnings(c, old *batchv1.CronJob) []string {
	path := field.NewPath("spec", "jobTemplate", "spec")
	var out []string
	switch {
	case old == nil:
		out = append(podspec.NameWarning(c.Name), r.specWarnings(path, &c.Spec.JobTemplate.Spec)...)
	case c.Generation != old.Generation:
		out = r.specWarnings(path, &c.Spec.JobTemplate.Spec)
	}
	if strings.Contains(c.Spec.Schedule, "TZ") {
		out = append(out, "spec.schedule: CRON_TZ or TZ used in schedule is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
	}
	return out
}
