package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
)

// kubeletOptions are the flags of connections to kubelets.
type kubeletOptions struct {
	cert, key, ca string
	addressTypes  []string
	timeout       time.Duration
}

func (o *kubeletOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.cert, "kubelet-client-certificate", "", "client certificate for kubelets")
	f.StringVar(&o.key, "kubelet-client-key", "", "private key of --kubelet-client-certificate")
	f.StringVar(&o.ca, "kubelet-certificate-authority", "", "authorities of kubelets' certificates (default: they are not verified)")
	f.StringSliceVar(&o.addressTypes, "kubelet-preferred-address-types", []string{"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"}, "types of node address for connections to kubelets, best first")
	f.DurationVar(&o.timeout, "kubelet-timeout", 5*time.Second, "timeout for connecting to a kubelet")
}

func (o *kubeletOptions) config(log *slog.Logger) (podverbs.Kubelet, error) {
	k := podverbs.Kubelet{DialTimeout: o.timeout, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}
	for _, t := range o.addressTypes {
		k.AddressTypes = append(k.AddressTypes, corev1.NodeAddressType(t))
	}
	if (o.cert == "") != (o.key == "") {
		return k, errors.New("--kubelet-client-certificate and --kubelet-client-key go together")
	}
	if o.cert != "" {
		key := flagfile.New("--kubelet-client-key", o.key)
		flagfile.WarnLoose(log, key)
		shown, err := flagfile.KeyPair(flagfile.New("--kubelet-client-certificate", o.cert), key)
		if err != nil {
			return k, err
		}
		k.TLS.Certificates = []tls.Certificate{*shown}
	}
	if o.ca == "" {
		return k, nil
	}
	file := flagfile.New("--kubelet-certificate-authority", o.ca)
	certs, err := clientcert.LoadAuthorities(o.ca)
	if err != nil {
		return k, file.Wrap(err)
	}
	k.TLS.RootCAs = x509.NewCertPool()
	for _, c := range certs {
		k.TLS.RootCAs.AddCert(c)
	}
	return k, nil
}
