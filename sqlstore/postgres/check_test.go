package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestRefusedDatabases opens databases and connection strings that cannot hold a store. Each gives one line
// that names the problem, and what to do.
func TestRefusedDatabases(t *testing.T) {
	plain := newDatabase(t, postgres.Config{})
	nowhere := newDatabase(t, postgres.Config{})
	nowhere.Exec(t, `DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET search_path = '''''; END $$`)
	admin := database{server.URL("postgres"), postgres.Config{}}
	admin.Exec(t, "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	admin.Exec(t, "CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	needs.PgBouncer(t)
	pooler, err := pgtest.StartPooler(t.Context(), server, "transaction")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pooler.Stop)
	u, err := url.Parse(plain.url)
	if err != nil {
		t.Fatal(err)
	}
	pooled := pooler.URL(u.Path[1:])
	cases := map[string][]string{
		server.URL("latin"):                      {`"latin"`, "LATIN1", "UTF8", "CREATE DATABASE"},
		server.URL("ascii"):                      {`"ascii"`, "SQL_ASCII", "UTF8"},
		nowhere.url:                              {"search_path", "ALTER ROLE"},
		plain.url + "&search_path=absent":        {"search_path", "absent", "ALTER ROLE"},
		plain.url + "&sslrootcerts=/x":           {"sslrootcerts", "correct or remove it"},
		plain.url + "&min_protocol_version=ssl3": {"min_protocol_version"},
		plain.url + "&tcp_user_timeout=soon":     {"tcp_user_timeout", "soon"},
		pooled:                                   {"--postgres-feed=poll", "transaction mode"},
	}
	for name, words := range map[string]string{
		"sslkeylogfile": "remove it", "oauth_issuer": "OAuth", "oauth_client_id": "OAuth", "oauth_client_secret": "OAuth", "oauth_scope": "OAuth",
		"scram_client_key": "password file", "scram_server_key": "password file", "requiressl": "sslmode=require", "tty": "remove it", "authtype": "remove it",
	} {
		cases[plain.url+"&"+name+"=s3cret"] = []string{name, words}
	}
	for url, words := range cases {
		d, err := postgres.Open(t.Context(), url, postgres.Config{})
		if err == nil {
			d.Close()
			t.Errorf("%s opens", url)
			continue
		}
		if errors.Is(err, sqlstore.ErrUnavailable) {
			t.Errorf("%s is waited for: %v", url, err)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: no %q in: %v", url, word, err)
			}
		}
		if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: more than a line, or a value: %v", url, err)
		}
	}
	// Commands that listen for nothing get along with the pooler.
	d := database{pooled, postgres.Config{AnyPooler: true}}.Open(t)
	must(t, d, createTxn("first", "x"))
}

// TestSettingsOfTheRole opens databases as a role that has limits of its own.
func TestSettingsOfTheRole(t *testing.T) {
	admin := database{server.URL("postgres"), postgres.Config{}}
	admin.Exec(t, "CREATE ROLE limited LOGIN CONNECTION LIMIT 12")
	db := newDatabase(t, postgres.Config{})
	db.Exec(t, "GRANT ALL ON SCHEMA public TO limited")
	db.Exec(t, "ALTER ROLE limited SET default_transaction_isolation = 'serializable'")
	var modern bool
	if db.Query(t, "SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'idle_session_timeout')", &modern); modern {
		db.Exec(t, "ALTER ROLE limited SET idle_session_timeout = '700ms'")
	}
	var log storetest.Log
	db.url, db.cfg.Log = strings.Replace(db.url, "postgres@", "limited@", 1), log.Logger()
	d := db.Open(t).(*postgres.Driver)
	for name, want := range map[string]string{"idle_session_timeout": "0", "transaction_timeout": "0", "default_transaction_isolation": "read committed"} {
		if got, err := d.Setting(context.Background(), name); err != nil || got != want && got != "" {
			t.Errorf("%s is %q in a session, %v", name, got, err)
		}
	}
	want := []string{"CONNECTION LIMIT of role limited", "allowed=12", `"one server"=9`, `"two servers"=18`, `"fitting --postgres-max-connections"=5`}
	if modern {
		want = append(want, "idle_session_timeout")
	}
	for _, words := range want {
		if !strings.Contains(log.String(), words) {
			t.Errorf("no %s in the log:\n%s", words, log.String())
		}
	}
	// If the server of the tests has no checksums of pages, another line reports it.
	if n := strings.Count(log.String(), "\n") - strings.Count(log.String(), "data_checksums = off"); n != len(want)-4 {
		t.Errorf("%d lines for %d settings:\n%s", n, len(want)-4, log.String())
	}
	must(t, d, createTxn("first", "x"))
	if modern {
		polls := database{db.url, postgres.Config{Poll: true, MaxConns: 4, Log: log.Logger()}}
		polls.Open(t)
		if !strings.Contains(log.String(), "ALTER ROLE ... SET idle_session_timeout = 0") {
			t.Errorf("with poll the session's own setting cannot be changed, and nothing is logged:\n%s", log.String())
		}
	}
}

// TestSettingsOfTransactions: the driver's settings hold in its transactions. With poll, where a pooler may lend the session to
// another client, they end with the transaction.
func TestSettingsOfTransactions(t *testing.T) {
	for _, poll := range []bool{false, true} {
		d := migratedDatabase(t, postgres.Config{Poll: poll, StatementTimeout: 7 * time.Second, LockTimeout: 3 * time.Second}).Open(t).(*postgres.Driver)
		for name, want := range map[string]string{
			"statement_timeout": "7s", "lock_timeout": "3s", "idle_in_transaction_session_timeout": "7s", "client_min_messages": "warning",
			"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
		} {
			inside, after, err := d.InTransaction(t.Context(), name)
			if err != nil || inside != want || (after == want) == poll {
				t.Errorf("poll is %t: %s is %q in a transaction, and %q after it, %v; want %q", poll, name, inside, after, err, want)
			}
		}
	}
}
