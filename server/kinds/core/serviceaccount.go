package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
)

// ServiceAccount has the rules for ServiceAccounts.
var ServiceAccount = kinds.Typed[*corev1.ServiceAccount]{
	ValidateName:        apivalidation.NameIsDNSSubdomain,
	Meta:                &kinds.WholeMeta,
	PrepareForCreate:    onlySecretNames,
	PrepareForUpdate:    func(s, _ *corev1.ServiceAccount) { onlySecretNames(s) },
	Warnings:            serviceAccountWarnings,
	UnconditionalUpdate: true,
	ReturnDeletedObject: true,
}.Strategy()

// onlySecretNames keeps only the names of references to secrets.
func onlySecretNames(s *corev1.ServiceAccount) {
	for i := range s.Secrets {
		s.Secrets[i] = corev1.ObjectReference{Name: s.Secrets[i].Name}
	}
}

// enforceMountable restricts pods of an account to the secrets that it lists.
const enforceMountable = "kubernetes.io/enforce-mountable-secrets"

// serviceAccountWarnings warns of deprecated fields.
func serviceAccountWarnings(a, old *corev1.ServiceAccount) []string {
	if _, set := a.Annotations[enforceMountable]; !set {
		return nil
	}
	if old != nil {
		if _, set := old.Annotations[enforceMountable]; set {
			return nil
		}
	}
	return []string{"metadata.annotations[" + enforceMountable + "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}

// ServiceAccountColumns is their Table form.
var ServiceAccountColumns = columns.Of(func(s *corev1.ServiceAccount, now time.Time) []any {
	return []any{s.Name, int64(len(s.Secrets)), columns.Since(s.CreationTimestamp, now)}
}, columns.Name(), columns.Text("Secrets", corev1.ServiceAccount{}.SwaggerDoc()["secrets"]), columns.Age())

// ServiceAccountColumnsSince133 is their Table form since release 1.33.
var ServiceAccountColumnsSince133 = columns.Of(func(s *corev1.ServiceAccount, now time.Time) []any {
	return []any{s.Name, columns.Since(s.CreationTimestamp, now)}
}, columns.Name(), columns.Age())
