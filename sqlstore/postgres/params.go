package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// libpq are its settings that package pgconn takes for settings of the server, which would
// refuse them, and the variables that give them.
var libpq = map[string]string{
	"hostaddr": "PGHOSTADDR", "keepalives": "", "keepalives_idle": "", "keepalives_interval": "", "keepalives_count": "",
	"ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION", "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION",
	"sslcrl": "PGSSLCRL", "sslcrldir": "PGSSLCRLDIR", "requirepeer": "PGREQUIREPEER", "gssencmode": "PGGSSENCMODE",
	"fallback_application_name": "", "replication": "", "client_encoding": "PGCLIENTENCODING",
	"tcp_user_timeout": "",
	// Without effect: the primary alone is used; TLS compresses nothing; Kerberos comes from no other library.
	"load_balance_hosts": "PGLOADBALANCEHOSTS", "sslcompression": "PGSSLCOMPRESSION",
	"gsslib": "PGGSSLIB", "gssdelegation": "PGGSSDELEGATION",
}

// refusedSettings are settings of libpq that this driver does not support, and their alternatives. The server
// would reject them as unknown parameters.
var refusedSettings = map[string]string{
	"sslkeylogfile":       "the keys of TLS connections are written nowhere; remove it",
	"oauth_issuer":        noOAuth,
	"oauth_client_id":     noOAuth,
	"oauth_client_secret": noOAuth,
	"oauth_scope":         noOAuth,
	"scram_client_key":    noKeys,
	"scram_server_key":    noKeys,
	"requiressl":          "libpq knows it no more; write sslmode=require",
	"authtype":            "libpq knows it no more; remove it",
	"tty":                 "libpq knows it no more; remove it",
}

const (
	noOAuth = "a login by OAuth is not supported; use a password, or a client certificate (sslcert, sslkey)"
	noKeys  = "a login with SCRAM keys in place of the password is not supported; put the password into the password file"
)

// Describe returns the URL of the database that a URL or keyword string names, completed from variables and
// files, without passwords and other settings.
func Describe(text string) (string, error) {
	pc, err := parse(text)
	if err != nil {
		return "", err
	}
	c := pc.ConnConfig
	u := url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database}
	if strings.HasPrefix(c.Host, "/") {
		u.RawQuery = "host=" + c.Host
		return u.String(), nil
	}
	hosts := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, f := range c.Fallbacks {
		if host := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	u.Host = strings.Join(hosts, ",")
	return u.String(), nil
}

// parse reads a URL or keyword string as libpq does, with its variables and files.
// Errors quote no part of it that may be a password.
func parse(text string) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, redact(err)
	}
	for _, name := range slices.Sorted(maps.Keys(refusedSettings)) {
		value := pc.ConnConfig.RuntimeParams[name]
		if delete(pc.ConnConfig.RuntimeParams, name); value != "" {
			return nil, fmt.Errorf("%s: %s", name, refusedSettings[name])
		}
	}
	given := make(map[string]string)
	for name, variable := range libpq {
		value, ok := pc.ConnConfig.RuntimeParams[name]
		delete(pc.ConnConfig.RuntimeParams, name)
		if !ok && variable != "" {
			value = os.Getenv(variable)
		}
		if value != "" {
			given[name] = value
		}
	}
	if err := adopt(pc.ConnConfig, given); err != nil {
		return nil, err
	}
	return pc, nil
}

// adopt applies the settings to a connection as libpq would.
func adopt(c *pgx.ConnConfig, given map[string]string) error {
	switch mode := given["gssencmode"]; mode {
	case "", "disable", "prefer":
	default:
		return fmt.Errorf("gssencmode=%s: encryption by GSSAPI is not to be had; use TLS", mode)
	}
	if v := given["replication"]; v != "" && !slices.Contains([]string{"off", "false", "no", "0"}, v) {
		return errors.New("replication: a replication connection cannot hold a store")
	}
	c.RuntimeParams["client_encoding"] = "UTF8" // even if a role or a variable sets it
	if c.RuntimeParams["application_name"] == "" && given["fallback_application_name"] != "" {
		c.RuntimeParams["application_name"] = given["fallback_application_name"]
	}
	dial, err := dialer(given)
	if err != nil {
		return err
	}
	c.DialFunc = dial
	if err := setAddresses(c, given["hostaddr"]); err != nil {
		return err
	}
	return setTLS(c, given)
}

// unheardTime bounds how long sent data may stay unacknowledged, unless tcp_user_timeout sets it: on Linux
// the connection ends then, because the other machine is gone.
const unheardTime = 5 * time.Second

// dialer makes connections that notice when the machine at the other end is gone.
func dialer(given map[string]string) (pgconn.DialFunc, error) {
	keep := net.KeepAliveConfig{Enable: given["keepalives"] != "0", Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}
	seconds := func(name string, to *time.Duration) error {
		n, err := strconv.ParseUint(cmp.Or(given[name], "0"), 10, 31)
		if err != nil {
			return fmt.Errorf("%s: %q is no number", name, given[name])
		}
		if n > 0 {
			*to = time.Duration(n) * time.Second
		}
		return nil
	}
	count := time.Duration(keep.Count) * time.Second
	err := errors.Join(seconds("keepalives_idle", &keep.Idle), seconds("keepalives_interval", &keep.Interval), seconds("keepalives_count", &count))
	keep.Count = int(count / time.Second)
	unheard, wrong := strconv.ParseUint(cmp.Or(given["tcp_user_timeout"], "0"), 10, 31)
	if wrong != nil {
		err = errors.Join(err, fmt.Errorf("tcp_user_timeout: %q is not a number of milliseconds", given["tcp_user_timeout"]))
	}
	unheard = cmp.Or(unheard, uint64(unheardTime/time.Millisecond))
	d := net.Dialer{KeepAliveConfig: keep, Control: func(network, _ string, c syscall.RawConn) error {
		return endUnheard(network, c, int(unheard))
	}}
	peer := given["requirepeer"]
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err == nil && peer != "" && network == "unix" {
			if err = checkPeer(conn.(*net.UnixConn), peer); err != nil {
				conn.Close()
				return nil, err
			}
		}
		return conn, err
	}, err
}

// setAddresses saves hosts the look-up of their addresses: a list with one for each.
func setAddresses(c *pgx.ConnConfig, list string) error {
	if list == "" {
		return nil
	}
	hosts := []string{c.Host}
	for _, f := range c.Fallbacks { // the same host may appear again, without TLS
		if !slices.Contains(hosts, f.Host) {
			hosts = append(hosts, f.Host)
		}
	}
	addresses := strings.Split(list, ",")
	if strings.HasPrefix(hosts[0], "/") || len(addresses) != len(hosts) {
		return fmt.Errorf("hostaddr: %d addresses for the hosts %s", len(addresses), strings.Join(hosts, ", "))
	}
	known := make(map[string][]string)
	for i, a := range addresses {
		if a = strings.TrimSpace(a); a == "" {
			continue
		}
		if net.ParseIP(a) == nil {
			return fmt.Errorf("hostaddr: %q is no address", a)
		}
		known[hosts[i]] = []string{a}
	}
	lookup := c.LookupFunc
	c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		if a := known[host]; a != nil {
			return a, nil
		}
		return lookup(ctx, host)
	}
	return nil
}

var tlsVersions = map[string]uint16{"": 0, "TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

// setTLS bounds the versions of TLS and has revoked certificates refused.
func setTLS(c *pgx.ConnConfig, given map[string]string) error {
	least, ok1 := tlsVersions[given["ssl_min_protocol_version"]]
	most, ok2 := tlsVersions[given["ssl_max_protocol_version"]]
	if !ok1 || !ok2 || most != 0 && least > most {
		return errors.New("ssl_min_protocol_version, ssl_max_protocol_version: want TLSv1.2 or TLSv1.3, and a maximum that is not below the minimum")
	}
	revoked, err := readRevoked(given["sslcrl"], given["sslcrldir"])
	if err != nil {
		return err
	}
	configs := []*tls.Config{c.TLSConfig}
	for _, f := range c.Fallbacks {
		configs = append(configs, f.TLSConfig)
	}
	for _, t := range configs {
		if t == nil {
			continue
		}
		t.MinVersion, t.MaxVersion = least, most
		if revoked != nil {
			t.VerifyConnection = revoked.verify
		}
	}
	return nil
}
