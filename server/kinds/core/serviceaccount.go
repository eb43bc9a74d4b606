package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
)

// ServiceAccount is how ServiceAccounts are written.
var ServiceAccount = kinds.Strategy{
	ValidateName:        apivalidation.NameIsDNSSubdomain,
	UnconditionalUpdate: true,
	ReturnDeletedObject: true,
}

// ServiceAccountColumns is their Table form.
var ServiceAccountColumns = columns.Of(func(s *corev1.ServiceAccount, now time.Time) []any {
	return []any{s.Name, int64(len(s.Secrets)), columns.Since(s.CreationTimestamp, now)}
}, columns.Name(), columns.Text("Secrets", corev1.ServiceAccount{}.SwaggerDoc()["secrets"]), columns.Age())
