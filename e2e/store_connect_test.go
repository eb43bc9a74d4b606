package e2e

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestConnectsAsLibpqDoes reaches a PostgreSQL that insists on TLS and a password in
// the forms that libpq knows, is refused where libpq would be, and reveals the password
// nowhere.
func TestConnectsAsLibpqDoes(t *testing.T) {
	t.Parallel()
	const first, second = "s3cret: one", "s3cret two"
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority := harness.NewAuthority(t, "database authority")
	serving := authority.Issue(t, func(c *x509.Certificate) {
		c.DNSNames, c.ExtKeyUsage = []string{"db.test"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	cert, key := harness.Files(t, serving)
	later := harness.NewAuthority(t, "later database authority")
	laterCert, laterKey := harness.Files(t, later.Issue(t, func(c *x509.Certificate) {
		c.DNSNames, c.ExtKeyUsage = []string{"db.test"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}))
	clientCert, clientKey := harness.Files(t, authority.Client(t, "certified"))
	needs.PostgreSQL(t)
	pg, err := pgtest.Start(t.Context(), pgtest.Options{
		Settings: map[string]string{"ssl": "on", "ssl_cert_file": "'serving.crt'", "ssl_key_file": "'serving.key'", "ssl_ca_file": "'ca.crt'"},
		Files: map[string]string{
			"serving.crt": string(cert), "serving.key": string(key), "ca.crt": string(authority.PEM),
			"later.crt": string(laterCert), "later.key": string(laterKey), "later-ca.crt": string(later.PEM),
			"pg_hba.conf": "host all postgres 127.0.0.1/32 trust\nhostssl all app 127.0.0.1/32 scram-sha-256\nhostssl all certified 127.0.0.1/32 cert\n",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	admin := func(statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), pg.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		for _, s := range statements {
			if _, err := conn.Exec(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	admin(fmt.Sprintf("CREATE ROLE app LOGIN PASSWORD '%s'", first), "CREATE ROLE certified LOGIN", "CREATE DATABASE app OWNER app",
		"REVOKE CONNECT ON DATABASE app FROM PUBLIC", "GRANT CONNECT ON DATABASE app TO certified")

	port := fmt.Sprint(pg.Port)
	ca := file("ca.crt", string(authority.PEM))
	other := file("other.crt", string(harness.NewAuthority(t, "stranger").PEM))
	passwords := file("pgpass", fmt.Sprintf("db.test:%s:app:app:%s\n", port, strings.ReplaceAll(first, ":", `\:`)))
	full := "postgres://app@db.test:" + port + "/app?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=" + ca
	services := file("services", fmt.Sprintf("[cluster]\nhost=db.test\nport=%s\nuser=app\ndbname=app\nsslmode=verify-full\nsslrootcert=%s\n", port, ca))
	passFile := "PGPASSFILE=" + passwords
	run := func(env []string, args ...string) (text string, err error) {
		cmd := prepareStore(t, args...)
		cmd.Env = append(os.Environ(), env...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err = cmd.Run()
		if strings.Contains(out.String(), "s3cret") {
			t.Errorf("%v shows the password: %s", args, out.String())
		}
		return out.String(), err
	}
	if text, err := run([]string{passFile}, "migrate", "--store", full); err != nil {
		t.Fatalf("%v %s", err, text)
	}
	admin(`ALTER DATABASE app SET log_statement = 'none'`)
	const seen = "postgres://app@db.test:"
	for name, c := range map[string]struct {
		env   []string
		store string
	}{
		"URL with password file": {[]string{passFile}, full},
		"PGPASSWORD":             {[]string{"PGPASSWORD=" + first}, full},
		"password in the URL":    {nil, strings.Replace(full, "app@", "app:s3cret%3A%20one@", 1)},
		"keywords":               {[]string{passFile}, "postgres:" + fmt.Sprintf("host=db.test hostaddr=127.0.0.1 port=%s user=app dbname=app sslmode=verify-full sslrootcert='%s'", port, ca)},
		"service file":           {[]string{passFile, "PGSERVICEFILE=" + services, "PGSERVICE=cluster", "PGHOSTADDR=127.0.0.1"}, "postgres://"},
		"service by keyword":     {[]string{passFile, "PGSERVICEFILE=" + services}, "postgres:service=cluster hostaddr=127.0.0.1"},
		"all settings": {[]string{passFile, "PGGSSENCMODE=prefer", "PGCLIENTENCODING=latin1"}, full + "&keepalives=1&keepalives_idle=20&tcp_user_timeout=1000&gssencmode=disable" +
			"&ssl_min_protocol_version=TLSv1.2&channel_binding=require&require_auth=scram-sha-256&load_balance_hosts=random&fallback_application_name=x&sslsni=1"},
		"nothing revoked": {[]string{passFile}, full + "&sslcrl=" + file("none.crl", string(authority.Revoke(t)))},
	} {
		if text, err := run(c.env, "status", "--store", c.store); err != nil || !strings.Contains(text, seen+port+"/app\n") {
			t.Errorf("%s: %v %s", name, err, text)
		}
	}
	identity := "&sslcert=" + file("client.crt", string(clientCert)) + "&sslkey=" + file("client.key", string(clientKey))
	if text, err := run(nil, "status", "--store", strings.Replace(full, "app@", "certified@", 1)+identity); err == nil || !strings.Contains(text, "permission denied") {
		t.Errorf("a client certificate: %v %s", err, text) // it is let in, and has no grants
	}
	for text, c := range map[string]struct {
		env   []string
		store string
	}{
		"password authentication failed": {[]string{"PGPASSWORD=s3cret wrong"}, full},
		"unknown authority":              {[]string{passFile}, strings.Replace(full, ca, other, 1)},
		"not db.elsewhere":               {nil, strings.Replace(full, "db.test", "db.elsewhere", 1)},
		"no encryption":                  {[]string{passFile}, strings.Replace(full, "verify-full", "disable", 1)},
		"is revoked":                     {[]string{passFile}, full + "&sslcrl=" + file("all.crl", string(authority.Revoke(t, serving)))},
		"no such file":                   {[]string{"PGPASSWORD=" + first}, strings.Replace(full, ca, "/nowhere/ca.crt", 1)},
		"unable to find service":         {[]string{"PGSERVICEFILE=" + services}, "postgres:service=s3rvice"},
		"target_session_attrs":           {nil, full + "&target_session_attrs=nonsense"},
		"GSSAPI":                         {nil, full + "&gssencmode=require"},
		"hostaddr":                       {nil, strings.Replace(full, "127.0.0.1", "nonsense", 1)},
		"keepalives_idle":                {nil, full + "&keepalives_idle=soon"},
		"protocol_version":               {nil, full + "&ssl_min_protocol_version=SSLv3"},
		"is not valid":                   {nil, "postgres:host=x password='s3cret"},
		"it names no known store":        {nil, "host=x password=s3cret:more"},
	} {
		if got, err := run(c.env, "status", "--store", c.store); err == nil || !strings.Contains(got, text) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %v, want one line with %q\n%s", c.store, err, text, got)
		}
	}
	t.Run("a password that changes", func(t *testing.T) {
		s := harness.StartT(t, harness.Options{Store: full, Env: []string{passFile}})
		a := newAPI(t, s)
		want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"before"}}`)
		admin(fmt.Sprintf("ALTER ROLE app PASSWORD '%s'", second), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // a commit that is cut has an open outcome
			if code, body, err := a.do(t.Context(), http.MethodGet, "/readyz/store", "", ""); err != nil || code != http.StatusOK {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("without a good password the store is ready: %s", body)
			}
		}
		code, header, body, err := a.send(t.Context(), http.MethodPost, configMaps, "application/json", `{"metadata":{"generateName":"meanwhile-"}}`)
		if err != nil || code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
			t.Errorf("a write without a password that is good: %d %s %v", code, body, err)
		}
		file("pgpass", fmt.Sprintf("db.test:%s:app:app:%s\n", port, second))
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			code, body, err := a.do(t.Context(), http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"after"}}`)
			if err == nil && (code == http.StatusCreated || code == http.StatusConflict) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("with the new password: %d %s %v", code, body, err)
			}
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if strings.Contains(s.Log(), "s3cret") {
			t.Errorf("the log has a password:\n%s", s.Log())
		}
	})
	t.Run("certificates that change", func(t *testing.T) {
		admin("CREATE DATABASE certs OWNER certified")
		ends := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'certified'"
		file("now-ca.crt", string(authority.PEM))
		file("now.crt", string(clientCert))
		file("now.key", string(clientKey))
		var log storetest.Log
		d, err := postgres.Open(t.Context(), fmt.Sprintf("postgres://certified@db.test:%s/certs?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=%[2]s/now-ca.crt&sslcert=%[2]s/now.crt&sslkey=%[2]s/now.key", port, dir),
			postgres.Config{Log: log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		until := func(what string, want bool) {
			t.Helper()
			for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
				_, err := d.Bounds(t.Context())
				if (err == nil) == want {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s: %v", what, err)
				}
			}
		}
		// Half of a new key: the old one stays in use.
		nextCert, nextKey := harness.Files(t, later.Client(t, "certified"))
		file("now.key", string(nextKey[:len(nextKey)/2]))
		admin(ends)
		until("with a broken key file", true)
		if text := log.String(); strings.Count(text, "cannot be used") != 1 || strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("of a broken file the log has\n%s", text)
		}
		// The database trusts another authority, and is certified by it.
		admin("ALTER SYSTEM SET ssl_cert_file = 'later.crt'", "ALTER SYSTEM SET ssl_key_file = 'later.key'", "ALTER SYSTEM SET ssl_ca_file = 'later-ca.crt'", "SELECT pg_reload_conf()")
		for refused := false; !refused; time.Sleep(10 * time.Millisecond) { // until it has read them
			admin(ends)
			_, err := d.Bounds(t.Context())
			refused = err != nil && strings.Contains(err.Error(), "unknown authority")
		}
		file("now-ca.crt", string(later.PEM))
		file("now.crt", string(nextCert))
		file("now.key", string(nextKey))
		until("with new files", true)
		if text := log.String(); !strings.Contains(text, "can be used again") {
			t.Errorf("of a file that is whole again the log has\n%s", text)
		}
	})
}
