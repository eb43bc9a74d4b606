package builtin

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

func batchV1() []*kinds.Resource {
	return rows("batch", "v1",
		&kinds.Resource{
			Plural: "cronjobs", Kind: "CronJob", Namespaced: true, ShortNames: []string{"cj"}, Categories: []string{"all"},
			New: object[batchv1.CronJob](), NewList: list[batchv1.CronJobList](),
			Storage:      &kinds.Storage{},
			Subresources: []kinds.Subresource{status("CronJob", kinds.Strategy{})},
		},
		&kinds.Resource{
			Plural: "jobs", Kind: "Job", Namespaced: true, Categories: []string{"all"},
			New: object[batchv1.Job](), NewList: list[batchv1.JobList](),
			Storage:      &kinds.Storage{},
			Subresources: []kinds.Subresource{status("Job", kinds.Strategy{})},
		},
	)
}
