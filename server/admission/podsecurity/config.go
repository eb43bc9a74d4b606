package podsecurity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"
)

// Config is the plugin's part of an admission configuration file.
type Config struct {
	// Defaults are for namespaces without labels; empty: privileged, latest.
	Defaults   Defaults   `json:"defaults"`
	Exemptions Exemptions `json:"exemptions"`
}

// Defaults are a standard and its version for each mode.
type Defaults struct {
	Enforce        string `json:"enforce"`
	EnforceVersion string `json:"enforce-version"`
	Audit          string `json:"audit"`
	AuditVersion   string `json:"audit-version"`
	Warn           string `json:"warn"`
	WarnVersion    string `json:"warn-version"`
}

// Exemptions are whose pods may break the standards.
type Exemptions struct {
	Usernames      []string `json:"usernames"`
	Namespaces     []string `json:"namespaces"`
	RuntimeClasses []string `json:"runtimeClasses"`
}

// ParseConfig reads a PodSecurityConfiguration; nil data is the default one.
func ParseConfig(data []byte) (Config, error) {
	if data == nil {
		return Config{}, nil
	}
	var c struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Config
	}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return Config{}, err
	}
	version, ok := strings.CutPrefix(c.APIVersion, "pod-security.admission.config.k8s.io/")
	if c.Kind != "PodSecurityConfiguration" || !ok || !slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, version) {
		return Config{}, fmt.Errorf("%s %s is not PodSecurityConfiguration of pod-security.admission.config.k8s.io/v1", c.APIVersion, c.Kind)
	}
	return c.Config, c.validate()
}

// policy returns the policy of the configured defaults.
func (c *Config) policy() (api.Policy, error) {
	if err := c.validate(); err != nil {
		return api.Policy{}, err
	}
	labels := map[string]string{}
	for label, value := range map[string]string{
		api.EnforceLevelLabel: c.Defaults.Enforce, api.EnforceVersionLabel: c.Defaults.EnforceVersion,
		api.AuditLevelLabel: c.Defaults.Audit, api.AuditVersionLabel: c.Defaults.AuditVersion,
		api.WarnLevelLabel: c.Defaults.Warn, api.WarnVersionLabel: c.Defaults.WarnVersion,
	} {
		if value != "" {
			labels[label] = value
		}
	}
	// Unlike with labels, the default for warnings does not follow the enforced level.
	labels[api.WarnLevelLabel] = cmp.Or(labels[api.WarnLevelLabel], string(api.LevelPrivileged))
	open := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	p, errs := api.PolicyToEvaluate(labels, api.Policy{Enforce: open, Audit: open, Warn: open})
	return p, errs.ToAggregate()
}

func (c *Config) validate() error {
	var errs field.ErrorList
	path := field.NewPath("defaults")
	for _, d := range []struct {
		name, level, version string
	}{
		{"enforce", c.Defaults.Enforce, c.Defaults.EnforceVersion},
		{"warn", c.Defaults.Warn, c.Defaults.WarnVersion},
		{"audit", c.Defaults.Audit, c.Defaults.AuditVersion},
	} {
		if _, err := api.ParseLevel(d.level); d.level != "" && err != nil {
			errs = append(errs, field.Invalid(path.Child(d.name), d.level, err.Error()))
		}
		if _, err := api.ParseVersion(d.version); d.version != "" && err != nil {
			errs = append(errs, field.Invalid(path.Child(d.name+"-version"), d.version, err.Error()))
		}
	}
	path = field.NewPath("exemptions")
	errs = append(errs, unique(path.Child("namespaces"), c.Exemptions.Namespaces, func(s string) []string { return apivalidation.ValidateNamespaceName(s, false) })...)
	errs = append(errs, unique(path.Child("runtimeClasses"), c.Exemptions.RuntimeClasses, func(s string) []string { return apivalidation.NameIsDNSSubdomain(s, false) })...)
	errs = append(errs, unique(path.Child("usernames"), c.Exemptions.Usernames, func(s string) []string {
		if s == "" {
			return []string{"username must not be empty"}
		}
		return nil
	})...)
	return errs.ToAggregate()
}

func unique(path *field.Path, list []string, wrong func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for i, s := range list {
		switch msgs := wrong(s); {
		case len(msgs) > 0:
			errs = append(errs, field.Invalid(path.Index(i), s, strings.Join(msgs, ", ")))
		case slices.Contains(list[:i], s):
			errs = append(errs, field.Duplicate(path.Index(i), s))
		}
	}
	return errs
}
