package builtin

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/batch"
)

func (c Config) batchV1() []*kinds.Resource {
	return rows("batch", "v1",
		&kinds.Resource{
			Plural: "cronjobs", Kind: "CronJob", Namespaced: true, ShortNames: []string{"cj"}, Categories: []string{"all"},
			New: object[batchv1.CronJob](), NewList: list[batchv1.CronJobList](),
			Storage: &kinds.Storage{Strategy: batch.CronJob(c.Feature)}, Columns: batch.CronJobColumns,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "jobs", Kind: "Job", Namespaced: true, Categories: []string{"all"},
			New: object[batchv1.Job](), NewList: list[batchv1.JobList](),
			Storage: &kinds.Storage{Strategy: batch.Job(c.Feature), Fields: batch.JobFields}, Columns: batch.JobColumns,
			FieldRefusal: "field label %q not supported for Job",
			Subresources: []kinds.Subresource{status()},
		},
	)
}
