//go:build unix

package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

func TestKillAndRun(t *testing.T) {
	needs.PostgreSQL(t)
	ctx := context.Background()
	s, err := pgtest.Start(ctx, pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	url, err := s.CreateDB(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("create table kept (n int)")
	s.Kill()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	exec("insert into kept values (1)")
}
