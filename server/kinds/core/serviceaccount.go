package core

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
)

// ServiceAccount is how ServiceAccounts are written.
var ServiceAccount = kinds.Strategy{
	ValidateName:        apivalidation.NameIsDNSSubdomain,
	Meta:                &kinds.WholeMeta,
	UnconditionalUpdate: true,
	ReturnDeletedObject: true,
	PrepareForCreate:    prepares(onlySecretNames),
	PrepareForUpdate:    preparesUpdate(func(s, _ *corev1.ServiceAccount) { onlySecretNames(s) }),
	Warnings:            serviceAccountWarnings,
}

// onlySecretNames keeps of references to secrets what they are read for.
func onlySecretNames(s *corev1.ServiceAccount) {
	for i := range s.Secrets {
		s.Secrets[i] = corev1.ObjectReference{Name: s.Secrets[i].Name}
	}
}

// enforceMountable restricts pods of an account to the secrets that it lists.
const enforceMountable = "kubernetes.io/enforce-mountable-secrets"

// serviceAccountWarnings warns of what had better not be set any more.
func serviceAccountWarnings(_ context.Context, obj, before kinds.Object) []string {
	if _, set := obj.GetAnnotations()[enforceMountable]; !set {
		return nil
	}
	if before != nil {
		if _, set := before.GetAnnotations()[enforceMountable]; set {
			return nil
		}
	}
	return []string{"metadata.annotations[" + enforceMountable + "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}

// ServiceAccountColumns is their Table form.
var ServiceAccountColumns = columns.Of(func(s *corev1.ServiceAccount, now time.Time) []any {
	return []any{s.Name, int64(len(s.Secrets)), columns.Since(s.CreationTimestamp, now)}
}, columns.Name(), columns.Text("Secrets", corev1.ServiceAccount{}.SwaggerDoc()["secrets"]), columns.Age())
