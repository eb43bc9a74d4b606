// Package listen declares the flags of HTTP, TLS, limits on requests, and the start and end of a server.
package listen

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/authx/freshfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/datadir"
	"github.com/rowlock/rowlock/server/filters"
)

// Flags are the flags of HTTP and TLS, and of the start and end of a server.
type Flags struct {
	Cert, Key             string
	Names                 []string // additional names and addresses in the generated serving certificate
	minVersion            string
	ciphers, named        []string
	maxStreams            int
	noHTTP2               bool
	origins, strict       []string
	goaway                float64
	livezGrace            time.Duration
	shutdownDelay         time.Duration
	refuse                bool
	watchGrace            time.Duration
	http2                 string
	watchDelivery         string // deprecated
	requestTimeout        time.Duration
	minRequestTimeout     int
	maxRead, maxWrite     int
	maxObject             int64
	limits                filters.Limits // except those two
	Profiling, contention bool
}

func (o *Flags) AddTo(f *pflag.FlagSet) {
	f.StringVar(&o.Cert, "tls-cert-file", "", "serving certificate, with its chain (default: signed by the authority in the data directory)")
	f.StringVar(&o.Key, "tls-private-key-file", "", "private key of --tls-cert-file")
	f.StringSliceVar(&o.Names, "tls-san", nil, "additional names and addresses for the serving certificate of the data directory")
	f.StringArrayVar(&o.named, "tls-sni-cert-key", nil, "CERT,KEY or CERT,KEY:NAME,*.NAME - a certificate for clients that request one of its names; may be repeated")
	f.StringVar(&o.minVersion, "tls-min-version", "VersionTLS12", "oldest version of TLS: VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13")
	f.StringSliceVar(&o.ciphers, "tls-cipher-suites", nil, "cipher suites of TLS up to 1.2 (default: those of Go)")
	f.IntVar(&o.maxStreams, "http2-max-streams-per-connection", 0, "most requests at once on an HTTP/2 connection; 0 is 100")
	f.BoolVar(&o.noHTTP2, "disable-http2-serving", false, "serve only HTTP/1.1")
	f.StringSliceVar(&o.origins, "cors-allowed-origins", nil, "regular expressions of origins whose pages may use the API; each must pin the start and the end of the host")
	f.StringSliceVar(&o.strict, "strict-transport-security-directives", nil, "directives for browsers: max-age=SECONDS, includeSubDomains, preload")
	f.Float64Var(&o.goaway, "goaway-chance", 0, "fraction of HTTP/2 requests, up to 0.02, after which the client is asked to reconnect")
	f.DurationVar(&o.livezGrace, "livez-grace-period", 0, "time in which livez ignores an unfinished start")
	f.DurationVar(&o.shutdownDelay, "shutdown-delay-duration", 0, "how long to continue serving after readyz fails")
	f.BoolVar(&o.refuse, "shutdown-send-retry-after", false, "while shutting down, answer new requests with 429 until requests in flight are done")
	f.DurationVar(&o.watchGrace, "shutdown-watch-termination-grace-period", 0, "period over which watches end while shutting down; 0 ends all at once")
	f.StringVar(&o.http2, "http2", string(server.OwnHTTP2), "HTTP/2 implementation: own, whose watches need no goroutine, or standard, that of Go, which needs more time and memory, for watches over HTTP/1.1 as well")
	f.StringVar(&o.watchDelivery, "watch-delivery", "direct", "")
	delivery := f.Lookup("watch-delivery")
	delivery.Deprecated, delivery.Hidden = "use --http2=standard instead of --watch-delivery=standard", true
}

// AddLimits declares the flags that limit requests in number and time.
func (o *Flags) AddLimits(f *pflag.FlagSet) {
	f.DurationVar(&o.requestTimeout, "request-timeout", time.Minute, "timeout of requests other than watches")
	f.IntVar(&o.minRequestTimeout, "min-request-timeout", 1800, "shortest duration, in seconds, of a watch that requests no timeout; it ends before twice that")
	f.IntVar(&o.maxRead, "max-requests-inflight", 400, "maximum number of concurrent read requests; 0 is no limit")
	f.IntVar(&o.maxWrite, "max-mutating-requests-inflight", 200, "maximum number of concurrent write requests; 0 is no limit")
	f.IntVar(&o.limits.ReadShare, "max-requests-inflight-per-user", 0, "maximum number of concurrent read requests of one user; 0 is a quarter of --max-requests-inflight")
	f.IntVar(&o.limits.WriteShare, "max-mutating-requests-inflight-per-user", 0, "maximum number of concurrent write requests of one user; 0 is a quarter of --max-mutating-requests-inflight")
	f.IntVar(&o.limits.Slow, "max-slow-requests-per-user", 200, "maximum number of read requests, and of write requests, of one user that wait for the client to send the body or to read the answer; 0 is no limit")
	f.Int64Var(&o.maxObject, "max-object-bytes", budget.DefaultObject, fmt.Sprintf("largest object that is stored, in bytes of JSON, %d to %d; a body may have twice as many. Other bounds follow, see docs/limits.md", budget.DefaultObject, budget.MostObject))
	f.IntVar(&o.limits.Watches, "max-watches", 50000, "maximum number of watches; 0 is no limit")
	f.IntVar(&o.limits.UserWatches, "max-watches-per-user", 5000, "maximum number of watches of one user; 0 is no limit")
	f.IntVar(&o.limits.Connects, "max-connects", 10000, "maximum number of connections to pods, nodes and services, including followed logs; 0 is no limit")
	f.IntVar(&o.limits.UserConnects, "max-connects-per-user", 1000, "maximum number of connections of one user to pods, nodes and services, including followed logs; 0 is no limit")
}

func (o *Flags) AddProfiling(f *pflag.FlagSet) {
	f.BoolVar(&o.Profiling, "profiling", true, "serve profiles of the process under /debug/pprof, and changes of -v at /debug/flags/v, to users that may use these paths")
	f.BoolVar(&o.contention, "contention-profiling", false, "measure where goroutines wait for one another, for /debug/pprof/block")
}

func (o *Flags) Validate() error {
	// A stock server has the flag with and without the article.
	for flag, bad := range map[string]bool{
		"shutdown-delay-duration": o.shutdownDelay < 0, "request-timeout": o.requestTimeout < 0, "min-request-timeout": o.minRequestTimeout < 0,
		"max-requests-inflight": o.maxRead < 0, "max-mutating-requests-inflight": o.maxWrite < 0,
	} {
		if bad {
			return fmt.Errorf("--%s can not be negative value", flag)
		}
	}
	for flag, bad := range map[string]bool{
		"max-requests-inflight-per-user": o.limits.ReadShare < 0, "max-mutating-requests-inflight-per-user": o.limits.WriteShare < 0, "max-slow-requests-per-user": o.limits.Slow < 0,
		"max-watches": o.limits.Watches < 0, "max-watches-per-user": o.limits.UserWatches < 0, "max-connects": o.limits.Connects < 0, "max-connects-per-user": o.limits.UserConnects < 0,
		"livez-grace-period": o.livezGrace < 0, "shutdown-watch-termination-grace-period": o.watchGrace < 0, "http2-max-streams-per-connection": o.maxStreams < 0,
	} {
		if bad {
			return fmt.Errorf("--%s can not be a negative value", flag)
		}
	}
	if o.maxRead+o.maxWrite == 0 {
		return errors.New("invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive")
	}
	if o.maxStreams > 8191 { // their buffers together are an int32
		return fmt.Errorf("--http2-max-streams-per-connection %d: at most 8191", o.maxStreams)
	}
	if _, err := budget.SizesOf(o.maxObject); err != nil {
		return fmt.Errorf("invalid argument \"%d\" for \"--max-object-bytes\" flag: want a whole number of bytes from %d to %d", o.maxObject, budget.DefaultObject, budget.MostObject)
	}
	if o.goaway < 0 || o.goaway > 0.02 {
		return errors.New("--goaway-chance can not be less than 0 or greater than 0.02")
	}
	if mode := server.HTTP2Mode(o.http2); mode != "" && mode != server.OwnHTTP2 && mode != server.StandardHTTP2 {
		return fmt.Errorf("--http2 %q: want %s or %s", o.http2, server.OwnHTTP2, server.StandardHTTP2)
	}
	if mode := o.watchDelivery; mode != "" && mode != "direct" && mode != "standard" {
		return fmt.Errorf("--watch-delivery %q: want direct or standard", mode)
	}
	if (o.Cert == "") != (o.Key == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file go together")
	}
	return nil
}

// Apply sets everything but TLS in a server's configuration.
func (o *Flags) Apply(cfg *server.Config) error {
	origins, err := filters.Origins(o.origins)
	if err != nil {
		return err
	}
	strict, err := filters.StrictTransport(o.strict)
	if err != nil {
		return err
	}
	cfg.Serving = server.Serving{
		MaxStreams: uint32(o.maxStreams), NoHTTP2: o.noHTTP2, GoawayChance: o.goaway, StrictTransport: strict, Origins: origins,
		RefuseLeaving: o.refuse, WatchGrace: o.watchGrace, HTTP2: o.http2Mode(),
	}
	cfg.LivezGrace, cfg.ShutdownDelay = o.livezGrace, o.shutdownDelay
	cfg.RequestTimeout, cfg.WatchFor = o.requestTimeout, time.Duration(o.minRequestTimeout)*time.Second
	cfg.MaxInFlight, cfg.MaxMutatingInFlight = limitOrNone(o.maxRead), limitOrNone(o.maxWrite)
	cfg.Limits, cfg.MaxObjectBytes = o.limits, o.maxObject
	if o.contention {
		runtime.SetBlockProfileRate(1)
	}
	return nil
}

// http2Mode returns the value of --http2, or the equivalent of the removed flag --watch-delivery.
func (o *Flags) http2Mode() server.HTTP2Mode {
	if o.watchDelivery == "standard" {
		return server.StandardHTTP2
	}
	return server.HTTP2Mode(o.http2)
}

var tlsVersions = map[string]uint16{
	"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
}

// TLS loads the serving certificates, and reloads them when their files change. Clients may present certificates,
// which the authenticators verify.
func (o *Flags) TLS(dir *datadir.Dir, log *slog.Logger) (*tls.Config, error) {
	o.minVersion = cmp.Or(o.minVersion, "VersionTLS12")
	version, ok := tlsVersions[o.minVersion]
	if !ok {
		return nil, fmt.Errorf("--tls-min-version: unknown tls version %q", o.minVersion)
	}
	suites, err := cipherSuites(o.ciphers)
	if err != nil {
		return nil, err
	}
	cert, key := flagfile.New("--tls-cert-file", o.Cert), flagfile.New("--tls-private-key-file", o.Key)
	if o.Cert == "" {
		cert, key = flagfile.New("--data-dir", dir.ServingCert), flagfile.New("--data-dir", dir.ServingKey)
	}
	main, err := certificate(cert, key, log)
	if err != nil {
		return nil, err
	}
	named, err := o.namedCertificates(log)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			for _, n := range named {
				if n.matches(hello.ServerName) {
					return n.cert.Get(), nil
				}
			}
			return main.Get(), nil
		},
		MinVersion: version, CipherSuites: suites, ClientAuth: tls.RequestClientCert,
		NextProtos: []string{"h2", "http/1.1"},
		// On a cluster's network, small records at the start of a connection cost more than they save.
		DynamicRecordSizingDisabled: true,
	}, nil
}

// certificate loads a pair of files, and reloads it when they change.
func certificate(cert, key flagfile.File, log *slog.Logger) (*freshfile.Value[*tls.Certificate], error) {
	read := func() (*tls.Certificate, error) {
		p, err := flagfile.KeyPair(cert, key)
		if err == nil { // an invalid pair is read again until it is valid
			flagfile.WarnLoose(log, key)
		}
		return p, err
	}
	return freshfile.New(read, func(err error) {
		log.Warn("the changed serving certificate cannot be read, the last one stays", "flag", cert.Flag, "file", cert.Path, "error", err)
	}, cert.Path, key.Path)
}

// namedCertificate is a value of --tls-sni-cert-key.
type namedCertificate struct {
	cert  *freshfile.Value[*tls.Certificate]
	names []string // patterns; none: the names in the certificate
}

// matches reports whether the certificate is for the name that a client requests.
func (n *namedCertificate) matches(name string) bool {
	if name == "" {
		return false
	}
	if len(n.names) == 0 {
		return n.cert.Get().Leaf.VerifyHostname(name) == nil
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(n.names, func(pattern string) bool {
		if rest, wild := strings.CutPrefix(pattern, "*."); wild {
			_, parent, _ := strings.Cut(name, ".")
			return parent == rest
		}
		return name == pattern
	})
}

func (o *Flags) namedCertificates(log *slog.Logger) ([]*namedCertificate, error) {
	var list []*namedCertificate
	for _, text := range o.named {
		pair, names, has := strings.Cut(text, ":")
		certFile, keyFile, two := strings.Cut(pair, ",")
		if !two || strings.Contains(keyFile, ",") {
			return nil, fmt.Errorf("--tls-sni-cert-key %q: expected comma separated certificate and key file paths", text)
		}
		if has && strings.TrimSpace(names) == "" {
			return nil, fmt.Errorf("--tls-sni-cert-key %q: empty names list is not allowed", text)
		}
		const flag = "--tls-sni-cert-key"
		cert, err := certificate(flagfile.New(flag, strings.TrimSpace(certFile)), flagfile.New(flag, strings.TrimSpace(keyFile)), log)
		if err != nil {
			return nil, err
		}
		n := &namedCertificate{cert: cert}
		if has {
			for name := range strings.SplitSeq(names, ",") {
				n.names = append(n.names, strings.ToLower(strings.TrimSpace(name)))
			}
		}
		list = append(list, n)
	}
	return list, nil
}

// cipherSuites resolves names.
func cipherSuites(names []string) ([]uint16, error) {
	known := map[string]uint16{
		"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		known[s.Name] = s.ID
	}
	var ids []uint16
	for _, name := range names {
		id, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("--tls-cipher-suites: cipher suite %s not supported or doesn't exist", name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// limitOrNone translates a limit for the server's configuration, in which 0 is the default and -1 no limit.
func limitOrNone(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}
