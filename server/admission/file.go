package admission

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// file is an AdmissionConfiguration of apiserver.config.k8s.io.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Plugins    []struct {
		Name          string         `json:"name"`
		Path          string         `json:"path"`
		Configuration map[string]any `json:"configuration"`
	} `json:"plugins"`
}

// LoadConfigs reads an admission configuration file, and the files to which it refers, into the configuration
// of each plugin. Paths in it are relative to the file's folder.
func LoadConfigs(path string) (map[string][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("unable to read admission control configuration: %w", err)
	}
	var f file
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return nil, fmt.Errorf("admission control configuration %s: %w", path, err)
	}
	switch f.APIVersion {
	case "apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1":
	default:
		return nil, fmt.Errorf("admission control configuration %s: apiVersion %q is not apiserver.config.k8s.io/v1", path, f.APIVersion)
	}
	if f.Kind != "AdmissionConfiguration" {
		return nil, fmt.Errorf("admission control configuration %s: kind %q is not AdmissionConfiguration", path, f.Kind)
	}
	configs := make(map[string][]byte, len(f.Plugins))
	for _, p := range f.Plugins {
		if _, twice := configs[p.Name]; twice {
			continue // the first one counts
		}
		switch {
		case p.Configuration != nil:
			if configs[p.Name], err = yaml.Marshal(p.Configuration); err != nil {
				return nil, fmt.Errorf("admission control configuration of %s: %w", p.Name, err)
			}
		case p.Path != "":
			part := p.Path
			if !filepath.IsAbs(part) {
				part = filepath.Join(filepath.Dir(path), part)
			}
			if configs[p.Name], err = os.ReadFile(part); err != nil {
				return nil, fmt.Errorf("admission control configuration of %s: %w", p.Name, err)
			}
		}
	}
	return configs, nil
}
