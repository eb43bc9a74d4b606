package main

import (
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/datadir"
)

// controllerOptions are the flags of controllers.
type controllerOptions struct{ list []string }

func (o *controllerOptions) addTo(f *pflag.FlagSet) {
	on, named := controllers.Switches()
	f.StringSliceVar(&o.list, "controllers", []string{"*"}, "built-in controllers to run: \"*\" is all that are on by default ("+strings.Join(on, ", ")+
		"), \"name\" adds one ("+strings.Join(named, ", ")+"), \"-name\" leaves one out")
}

// build makes what the flags say; authority is the file that namespaces are told of.
func (o *controllerOptions) build(dir *datadir.Dir, authority string) (controllers.Config, error) {
	s, err := controllers.Select(o.list)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("--controllers: %w", err)
	}
	return controllers.Config{
		Runs: s.Runs,
		Sign: func(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, life time.Duration) ([]byte, error) {
			return dir.Sign(r, usages, life, time.Now())
		},
		Authority: func() ([]byte, error) { return os.ReadFile(authority) },
	}, nil
}
