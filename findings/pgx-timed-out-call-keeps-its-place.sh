#!/bin/sh
# github.com/jackc/pgx/v5 v5.12.0 (pgconn, pgxpool).
#
# Seen: when the context of a call ends, pgconn closes the connection in the background and
# first opens a second connection to ask the server to cancel the query. If the host accepts
# connections and answers nothing (a stopped process, a frozen machine, a proxy without its
# server), that waits for 15 s, which nothing configures, and the connection's place in the
# pool stays taken: with N places, N calls that time out after 200 ms shut the pool for 15 s.
# Expected: the place is free when the call has returned, as with database/sql, so that the
# next call may reach the healthy server behind the same address.
# Who is hurt: services with short timeouts, which chose them to fail over fast: after a
# failover each pool stands still for a quarter of a minute and every caller in that time
# gets "context deadline exceeded" without having sent a byte.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
)

// serve greets each session as PostgreSQL does, then reads and never answers. What does not
// begin a session (the request to cancel) is accepted and left without an answer.
func serve(conn net.Conn, sessions *atomic.Int64) {
	backend := pgproto3.NewBackend(conn, conn)
	first, err := backend.ReceiveStartupMessage()
	if err != nil {
		return
	}
	if _, ok := first.(*pgproto3.StartupMessage); ok {
		sessions.Add(1)
		backend.Send(&pgproto3.AuthenticationOk{})
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if backend.Flush() != nil {
			return
		}
	}
	for buf := make([]byte, 4096); ; {
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var sessions atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, &sessions)
		}
	}()
	pool, err := pgxpool.New(context.Background(),
		fmt.Sprintf("postgres://u@%s/d?sslmode=disable&pool_max_conns=1", listener.Addr()))
	if err != nil {
		panic(err)
	}
	call := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		_, _ = pool.Exec(ctx, "select 1")
	}
	call()
	ended := time.Now()
	fmt.Println("the first call ended; sessions begun:", sessions.Load(), "places taken:", pool.Stat().TotalConns())
	failed := 0
	for sessions.Load() == 1 && time.Since(ended) < time.Minute {
		call()
		failed++
	}
	waited := time.Since(ended)
	fmt.Println("calls that ended before one could begin a session: more than 20:", failed > 20)
	fmt.Println("the place was free again after 14 to 25 s:", waited > 14*time.Second && waited < 25*time.Second)
}
EOF
go mod init finding 2>/dev/null
go get github.com/jackc/pgx/v5@v5.12.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
the first call ended; sessions begun: 1 places taken: 1
calls that ended before one could begin a session: more than 20: true
the place was free again after 14 to 25 s: true
EOF
diff want out
