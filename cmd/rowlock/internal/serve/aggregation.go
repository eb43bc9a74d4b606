package serve

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/authx/freshfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/datadir"
)

// aggregationOptions are the flags of requests to aggregated API servers.
type aggregationOptions struct {
	cert, key       string
	rejectRedirects bool
}

func (o *aggregationOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.cert, "proxy-client-cert-file", "", "client certificate for aggregated API servers (default: generated in the data directory, with a separate authority)")
	f.StringVar(&o.key, "proxy-client-key-file", "", "private key of --proxy-client-cert-file")
	f.BoolVar(&o.rejectRedirects, "aggregator-reject-forwarding-redirect", true, "answer 502 if an aggregated API server redirects a client: clients follow redirects with their credentials")
}

// build returns what the flags configure. own is the certificate that was made in the data directory; nil if the
// flags name another one.
func (o *aggregationOptions) build(dir *datadir.Dir, log *slog.Logger) (a server.Aggregation, own *datadir.FrontProxy, err error) {
	a.Redirects = !o.rejectRedirects
	if (o.cert == "") != (o.key == "") {
		return a, nil, errors.New("--proxy-client-cert-file and --proxy-client-key-file go together")
	}
	cert, key := flagfile.New("--proxy-client-cert-file", o.cert), flagfile.New("--proxy-client-key-file", o.key)
	if o.cert == "" {
		if own, err = dir.FrontProxy(time.Now()); err != nil {
			return a, nil, err
		}
		cert, key = flagfile.New("--data-dir", own.Cert), flagfile.New("--data-dir", own.Key)
		flagfile.WarnLoose(log, flagfile.New("--data-dir", own.CAKey))
	}
	flagfile.WarnLoose(log, key)
	shown, err := freshfile.New(func() (*tls.Certificate, error) { return flagfile.KeyPair(cert, key) }, func(err error) {
		log.Warn("the changed certificate for aggregated API servers cannot be read, the last one stays", "flag", cert.Flag, "file", cert.Path, "error", err)
	}, cert.Path, key.Path)
	if err != nil {
		return a, nil, err
	}
	a.Certificate = shown.Get
	return a, own, nil
}
