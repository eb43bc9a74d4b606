package serve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/plugins"
	"github.com/rowlock/rowlock/server/admission/pods"
	"github.com/rowlock/rowlock/server/release"
)

// admissionOptions are the flags of admission.
type admissionOptions struct {
	enable, disable, only []string
	config                string
	tolerations           pods.Tolerations
	direct                bool
}

func (o *admissionOptions) addTo(f *pflag.FlagSet) {
	all, on := plugins.Names(release.Newest)
	f.StringSliceVar(&o.enable, "enable-admission-plugins", nil, "admission plugins to enable in addition to the default ones ("+strings.Join(on, ", ")+"); known are "+strings.Join(all, ", ")+". Their order is fixed")
	f.StringSliceVar(&o.disable, "disable-admission-plugins", nil, "admission plugins to disable although they are on by default")
	f.StringSliceVar(&o.only, "admission-control", nil, "the only admission plugins to run")
	f.Lookup("admission-control").Deprecated, f.Lookup("admission-control").Hidden = "use --enable-admission-plugins and --disable-admission-plugins", true
	f.StringVar(&o.config, "admission-control-config-file", "", "AdmissionConfiguration: the settings of single admission plugins")
	f.BoolVar(&o.direct, "enable-aggregator-routing", false, "connect to the endpoints of Services of webhooks and aggregated API servers, not to their addresses")
	f.Int64Var(&o.tolerations.NotReady, "default-not-ready-toleration-seconds", 300, "how long pods without a toleration of their own stay on a node that is not ready")
	f.Int64Var(&o.tolerations.Unreachable, "default-unreachable-toleration-seconds", 300, "how long pods without a toleration of their own stay on a node that cannot be reached")
}

func (o *admissionOptions) build(v release.Version) (plugins.Config, error) {
	a := plugins.Config{Enable: o.enable, Disable: o.disable, Tolerations: &o.tolerations, DirectServices: o.direct}
	if o.only != nil {
		if o.enable != nil || o.disable != nil {
			return a, errors.New("admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive")
		}
		if len(o.only) == 0 {
			return a, errors.New("--admission-control names no admission plugin, which would turn them all off")
		}
		all, _ := plugins.Names(v)
		for _, name := range o.only {
			if !slices.Contains(all, name) {
				return a, fmt.Errorf("admission-control plugin %q is unknown", name)
			}
		}
		a.Enable = o.only
		a.Disable = slices.DeleteFunc(all, func(name string) bool { return slices.Contains(o.only, name) })
	}
	if err := a.Validate(v); err != nil {
		return a, err
	}
	if o.config == "" {
		return a, nil
	}
	var err error
	a.Configs, err = admission.LoadConfigs(o.config)
	return a, flagfile.New("--admission-control-config-file", o.config).Wrap(err)
}
