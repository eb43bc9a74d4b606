package core

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Secret has the rules for Secrets.
var Secret = kinds.Typed[*corev1.Secret]{
	ValidateName:        apivalidation.NameIsDNSSubdomain,
	Meta:                &kinds.WholeMeta,
	Default:             defaultSecret,
	Validate:            validateSecret,
	ValidateUpdate:      validateSecretUpdate,
	Warnings:            secretWarnings,
	UnconditionalUpdate: true,
}.Strategy()

// SecretFields are the selectable fields of Secrets.
var SecretFields = []kinds.SelectableField{{Label: "type", Path: []string{"type"}}}

// SecretColumns is their Table form.
var SecretColumns = columns.Of(func(s *corev1.Secret, now time.Time) []any {
	return []any{s.Name, string(s.Type), int64(len(s.Data)), columns.Since(s.CreationTimestamp, now)}
}, columns.Name(), columns.Text("Type", corev1.Secret{}.SwaggerDoc()["type"]),
	columns.Text("Data", corev1.Secret{}.SwaggerDoc()["data"]), columns.Age())

// defaultSecret folds stringData, which is only ever written, into data.
func defaultSecret(s *corev1.Secret) {
	nullIsEmpty(s.Data)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = make(map[string][]byte, len(s.StringData))
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
	s.Type = cmp.Or(s.Type, corev1.SecretTypeOpaque)
}

// nullIsEmpty makes null values of a map empty ones: a stock server, which keeps such
// maps as protobuf, shows them as "".
func nullIsEmpty(data map[string][]byte) {
	for key, value := range data {
		if value == nil {
			data[key] = []byte{}
		}
	}
}

// secretWarnings returns why a key and a certificate do not go together.
func secretWarnings(s, _ *corev1.Secret) []string {
	if s.Type != corev1.SecretTypeTLS {
		return nil
	}
	if costlyKey(s.Data[corev1.TLSPrivateKeyKey]) {
		return []string{"the private key is too large to be compared with the certificate"}
	}
	if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func validateSecret(s *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("data")
	size := 0
	for _, key := range rules.Until(&errs, sorted(s.Data)) {
		errs = append(errs, dataKey(key, path)...)
		size += len(s.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(path, "", corev1.MaxSecretSize))
	}
	return append(errs, validateSecretType(s, path)...)
}

// validateSecretType checks that a secret has the keys that its type requires.
func validateSecretType(s *corev1.Secret, path *field.Path) field.ErrorList {
	has := func(key string) bool {
		_, ok := s.Data[key]
		return ok
	}
	required := func(keys ...string) (errs field.ErrorList) {
		for _, key := range keys {
			errs = rules.RequiredIf(errs, !has(key), path.Key(key), "")
		}
		return errs
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			return field.ErrorList{field.Required(metaPath.Child("annotations").Key(corev1.ServiceAccountNameKey), "")}
		}
	case corev1.SecretTypeDockercfg:
		return append(required(corev1.DockerConfigKey), jsonContent(s, corev1.DockerConfigKey, path)...)
	case corev1.SecretTypeDockerConfigJson:
		return append(required(corev1.DockerConfigJsonKey), jsonContent(s, corev1.DockerConfigJsonKey, path)...)
	case corev1.SecretTypeBasicAuth:
		if !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey) {
			return required(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			return field.ErrorList{field.Required(path.Key(corev1.SSHAuthPrivateKey), "")}
		}
	case corev1.SecretTypeTLS:
		return required(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return nil
}

// jsonContent checks that a value, where there is one, is a JSON object, without
// the memory that its members would take. The error does not show it.
func jsonContent(s *corev1.Secret, key string, path *field.Path) field.ErrorList {
	value, ok := s.Data[key]
	if !ok {
		return nil
	}
	err := json.Unmarshal(value, &struct{}{})
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		kind.Type = reflect.TypeFor[map[string]any]() // as clients know the error
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

func validateSecretUpdate(s, old *corev1.Secret) field.ErrorList {
	errs := rules.Immutable(s.Type, old.Type, field.NewPath("type"))
	if rules.Value(old.Immutable) {
		errs = append(errs, frozen("immutable", !rules.Value(s.Immutable))...)
		errs = append(errs, frozen("data", !reflect.DeepEqual(s.Data, old.Data))...)
	}
	return append(errs, validateSecret(s)...)
}
