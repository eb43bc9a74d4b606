package egress

import (
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx/configfile"
)

// Names of networks that connections go to.
const (
	ControlPlane = "controlplane"
	Etcd         = "etcd"
	Cluster      = "cluster"
)

// Protocols of proxies.
const (
	direct      = "Direct"
	httpConnect = "HTTPConnect"
	grpcProxy   = "GRPC"
)

// known are the versions of the configuration, which differ in nothing.
var known = []metav1.TypeMeta{
	{APIVersion: "apiserver.k8s.io/v1beta1", Kind: "EgressSelectorConfiguration"},
	{APIVersion: "apiserver.k8s.io/v1alpha1", Kind: "EgressSelectorConfiguration"},
}

// Config is an EgressSelectorConfiguration.
type Config struct {
	Kind             string      `json:"kind"`
	APIVersion       string      `json:"apiVersion"`
	EgressSelections []selection `json:"egressSelections"`
}

type selection struct {
	Name       string     `json:"name"`
	Connection connection `json:"connection"`
}

type connection struct {
	ProxyProtocol string     `json:"proxyProtocol"`
	Transport     *transport `json:"transport"`
}

type transport struct {
	TCP *tcpTransport `json:"tcp"`
	UDS *udsTransport `json:"uds"`
}

type tcpTransport struct {
	URL       string     `json:"url"`
	TLSConfig *tlsConfig `json:"tlsConfig"`
}

type udsTransport struct {
	UDSName string `json:"udsName"`
}

type tlsConfig struct {
	CABundle   string `json:"caBundle"`
	ClientKey  string `json:"clientKey"`
	ClientCert string `json:"clientCert"`
}

// Load reads a configuration from a file.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("egress-selector-config-file %s does not exist", path)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read egress selector config: unable to read egress selector configuration from %q [%w]", path, err)
	}
	c := &Config{}
	if err := configfile.DecodeAs(data, known, c); err != nil {
		return nil, fmt.Errorf("failed to read egress selector config: %w", err)
	}
	for i := range c.EgressSelections {
		if s := &c.EgressSelections[i]; s.Name == "master" { // as it was called once
			s.Name = ControlPlane
		}
	}
	if err := c.validate().ToAggregate(); err != nil {
		return nil, fmt.Errorf("failed to validate egress selector configuration: %w", err)
	}
	return c, nil
}

func (c *Config) validate() (errs field.ErrorList) {
	at := field.NewPath("service", "connection")
	for i := range c.EgressSelections {
		errs = append(errs, c.EgressSelections[i].Connection.validate(at)...)
	}
	names := []string{Cluster, ControlPlane, Etcd}
	var seen []string
	for i := range c.EgressSelections {
		name := strings.ToLower(c.EgressSelections[i].Name)
		switch {
		case slices.Contains(seen, name):
			errs = append(errs, field.Duplicate(at.Index(i), name))
		case !slices.Contains(names, name):
			errs = append(errs, field.NotSupported(at, name, names))
		}
		seen = append(seen, name)
	}
	return errs
}

func (c *connection) validate(at *field.Path) field.ErrorList {
	t := c.Transport
	switch c.ProxyProtocol {
	case direct:
		if t != nil {
			return field.ErrorList{field.Invalid(at.Child("transport"), "direct", "Transport config should be absent for direct connect")}
		}
		return nil
	case httpConnect:
		switch {
		case t == nil:
			return field.ErrorList{field.Required(at.Child("transport"), "transport must be set for HTTPConnect")}
		case t.TCP != nil && t.UDS != nil:
			return field.ErrorList{field.Invalid(at.Child("tcp"), t.TCP.URL, "TCP and UDS cannot both be set")}
		case t.TCP == nil && t.UDS == nil:
			return field.ErrorList{field.Required(at.Child("tcp"), "One of TCP or UDS must be set")}
		case t.TCP != nil:
			return t.TCP.validate(at)
		}
		return t.UDS.validate(at)
	case grpcProxy:
		switch {
		case t == nil:
			return field.ErrorList{field.Required(at.Child("transport"), "transport must be set for GRPC")}
		case t.UDS == nil:
			return field.ErrorList{field.Required(at.Child("uds"), "UDS must be set with GRPC")}
		}
		return t.UDS.validate(at)
	}
	return field.ErrorList{field.NotSupported(at.Child("protocol"), c.ProxyProtocol, []string{direct, httpConnect, grpcProxy})}
}

func (u *udsTransport) validate(at *field.Path) field.ErrorList {
	if u.UDSName == "" {
		return field.ErrorList{field.Invalid(at.Child("udsName"), "nil", "UDSName should be present for UDS connections")}
	}
	return nil
}

func (t *tcpTransport) validate(at *field.Path) field.ErrorList {
	switch {
	case strings.HasPrefix(t.URL, "https://"):
		return t.TLSConfig.validate(at.Child("tlsConfig"))
	case !strings.HasPrefix(t.URL, "http://"):
		return field.ErrorList{field.Invalid(at.Child("url"), t.URL, "supported connection protocols are http:// and https://")}
	case t.TLSConfig != nil:
		return field.ErrorList{field.Invalid(at.Child("tlsConfig"), "nil", "TLSConfig config should not be present when using HTTP")}
	}
	return nil
}

func (t *tlsConfig) validate(at *field.Path) (errs field.ErrorList) {
	if t == nil {
		return field.ErrorList{field.Required(at, "TLSConfig must be present when using HTTPS")}
	}
	if t.CABundle != "" && !exists(t.CABundle) {
		errs = append(errs, field.Invalid(at.Child("caBundle"), t.CABundle, "TLS config ca bundle does not exist"))
	}
	switch {
	case t.ClientCert == "":
		errs = append(errs, field.Invalid(at.Child("clientCert"), "nil", "Using TLS requires clientCert"))
	case !exists(t.ClientCert):
		errs = append(errs, field.Invalid(at.Child("clientCert"), t.ClientCert, "TLS client cert does not exist"))
	}
	switch {
	case t.ClientKey == "":
		errs = append(errs, field.Invalid(at.Child("clientKey"), "nil", "Using TLS requires requires clientKey"))
	case !exists(t.ClientKey):
		errs = append(errs, field.Invalid(at.Child("clientKey"), t.ClientKey, "TLS client key does not exist"))
	}
	return errs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
