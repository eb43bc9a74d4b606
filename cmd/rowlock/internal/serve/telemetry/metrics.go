package telemetry

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/server/release"
)

// MetricsFlags are the flags that select metrics.
type MetricsFlags struct {
	disabled   []string
	labels     map[string]string
	manifest   string
	showHidden string
}

func (o *MetricsFlags) AddTo(f *pflag.FlagSet) {
	f.StringSliceVar(&o.disabled, "disabled-metrics", nil, "names of metrics that are not exposed")
	f.StringToStringVar(&o.labels, "allow-metric-labels", nil, "METRIC,LABEL=VALUE,VALUE - the values of a label that are exposed; all others become \"unexpected\"")
	f.StringVar(&o.manifest, "allow-metric-labels-manifest", "", "YAML file of \"METRIC,LABEL\": VALUE,VALUE, in place of --allow-metric-labels")
	f.StringVar(&o.showHidden, "show-hidden-metrics-for-version", "", "show the metrics that were hidden in this release, which can only be the one before that of the server: "+previous(release.Default)+", and "+previous(release.Newest)+" with --emulated-version")
}

// previous returns the minor release before that of the binary.
func previous(v release.Version) string { return fmt.Sprintf("1.%d", v.Binary().Minor()-1) }

// Build makes the selection of a server of a release.
func (o *MetricsFlags) Build(v release.Version) (metrics.Selection, error) {
	s := metrics.Selection{Release: v, Disabled: o.disabled, Allowed: map[string][]string{}, Hidden: o.showHidden != ""}
	if o.showHidden != "" && o.showHidden != previous(v) {
		return s, fmt.Errorf("--show-hidden-metrics-for-version must be omitted or have the value '%s'. Only the previous minor version is allowed", previous(v))
	}
	labels := o.labels
	if len(labels) == 0 && o.manifest != "" {
		file := flagfile.New("--allow-metric-labels-manifest", o.manifest)
		text, err := file.Read()
		if err != nil {
			return s, err
		}
		if err := yaml.UnmarshalStrict(text, &labels); err != nil {
			return s, file.Wrap(err)
		}
	}
	for key, values := range labels {
		s.Allowed[key] = strings.Split(values, ",")
	}
	if err := s.Validate(); err != nil && o.manifest != "" && len(o.labels) == 0 {
		return s, flagfile.New("--allow-metric-labels-manifest", o.manifest).Wrap(err)
	} else if err != nil {
		return s, err
	}
	return s, nil
}
