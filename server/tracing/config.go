package tracing

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx/configfile"
)

// million is the base of sampling rates.
const million = 1000000

// Config is a TracingConfiguration.
type Config struct {
	// Endpoint is the address of the collector; nil: localhost:4317.
	Endpoint *string
	// SamplingRatePerMillion is the number of traced requests in a million; nil: none.
	SamplingRatePerMillion *int32
}

// Load reads a configuration from a file, which may have version v1 if v1 is true.
func Load(path string, v1 bool) (*Config, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("tracing-config-file %s does not exist", path)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read tracing config: unable to read tracing configuration from %q: %w", path, err)
	}
	var c struct {
		Kind                   string  `json:"kind"`
		APIVersion             string  `json:"apiVersion"`
		Endpoint               *string `json:"endpoint"`
		SamplingRatePerMillion *int32  `json:"samplingRatePerMillion"`
	}
	versions := []string{"v1alpha1", "v1beta1"}
	if v1 {
		versions = append(versions, "v1")
	}
	if err := configfile.Decode(data, "TracingConfiguration", versions, &c); err != nil {
		return nil, fmt.Errorf("failed to read tracing config: unable to decode tracing configuration data: %w", err)
	}
	read := &Config{c.Endpoint, c.SamplingRatePerMillion}
	if err := read.validate().ToAggregate(); err != nil {
		return nil, fmt.Errorf("failed to validate tracing configuration: %w", err)
	}
	return read, nil
}

func (c *Config) validate() (errs field.ErrorList) {
	if rate := c.SamplingRatePerMillion; rate != nil {
		at := field.NewPath("samplingRatePerMillion")
		if *rate < 0 {
			errs = append(errs, field.Invalid(at, *rate, "sampling rate must be positive"))
		}
		if *rate > million {
			errs = append(errs, field.Invalid(at, *rate, "sampling rate per million must be less than or equal to one million"))
		}
	}
	if c.Endpoint == nil {
		return errs
	}
	at, endpoint := field.NewPath("endpoint"), *c.Endpoint
	if !strings.Contains(endpoint, "//") {
		endpoint = "dns://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return append(errs, field.Invalid(at, endpoint, err.Error()))
	}
	switch u.Scheme {
	case "dns", "unix", "unix-abstract":
		return errs
	}
	return append(errs, field.Invalid(at, endpoint, fmt.Sprintf(
		"unsupported scheme: %v.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md", u.Scheme)))
}
