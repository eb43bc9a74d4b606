package webhook

import (
	"fmt"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/webhook"
)

// ParseCredentials reads the configuration of a plugin, which names a kubeconfig with
// the credentials for webhooks; nil where there is none.
func ParseCredentials(config []byte) (*webhook.Credentials, error) {
	if len(config) == 0 {
		return nil, nil
	}
	var c struct {
		APIVersion     string `json:"apiVersion"`
		Kind           string `json:"kind"`
		KubeConfigFile string `json:"kubeConfigFile"`
	}
	if err := yaml.UnmarshalStrict(config, &c); err != nil {
		return nil, err
	}
	switch c.APIVersion + " " + c.Kind {
	case "apiserver.config.k8s.io/v1 WebhookAdmissionConfiguration", "apiserver.config.k8s.io/v1alpha1 WebhookAdmission":
	default:
		return nil, fmt.Errorf("%s %s is not WebhookAdmissionConfiguration of apiserver.config.k8s.io/v1", c.APIVersion, c.Kind)
	}
	if !filepath.IsAbs(c.KubeConfigFile) {
		return nil, fmt.Errorf("kubeConfigFile: Invalid value: %q: must be an absolute file path", c.KubeConfigFile)
	}
	return webhook.LoadCredentials(c.KubeConfigFile)
}
