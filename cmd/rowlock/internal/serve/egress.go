package serve

import (
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/compat"
	"github.com/rowlock/rowlock/server/egress"
)

// egressOptions are the flags of proxies for outgoing connections.
type egressOptions struct{ path string }

func (o *egressOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.path, "egress-selector-config-file", "", "EgressSelectorConfiguration file: proxies for connections to nodes, webhooks and aggregated API servers")
}

// build loads the file; nil without one.
func (o *egressOptions) build(log *slog.Logger) (*egress.Selector, error) {
	if o.path == "" {
		return nil, nil
	}
	file := flagfile.New("--egress-selector-config-file", o.path)
	c, err := egress.Load(o.path)
	if err != nil {
		return nil, file.Wrap(err)
	}
	s, err := egress.New(c)
	if err != nil {
		return nil, file.Wrap(err)
	}
	if s.To(egress.Etcd) != nil {
		log.Warn("an egress selection has no effect", "name", egress.Etcd, "reason", compat.NoEtcd)
	}
	return s, nil
}
