// Command replay holds recorded answers against a server: a running one named by
// --url, or a fresh one that it builds and starts.
//
//	go run ./e2e/replay [-v] [-store URL] [-url URL -ca FILE -token TOKEN] FILE...
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/recorded"
)

func main() {
	url := flag.String("url", "", "server to ask; empty: start a fresh one")
	ca := flag.String("ca", "", "CA certificate of --url")
	token := flag.String("token", harness.AdminToken, "token of user admin in group system:masters")
	store := flag.String("store", "", "--store of the fresh server")
	verbose := flag.Bool("v", false, "print every difference")
	flag.Parse()
	if err := run(*url, *ca, *token, *store, *verbose, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

func run(url, ca, token, store string, verbose bool, files []string) error {
	ctx := context.Background()
	srv := recorded.Server{URL: url, Token: token}
	if url == "" {
		dir, err := os.MkdirTemp("", "replay-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		defer harness.Cleanup()
		s, err := harness.Start(ctx, harness.Options{Dir: dir, Store: store})
		if err != nil {
			return err
		}
		defer s.Kill()
		srv.URL = s.URL
		if srv.Client, err = s.Client(); err != nil {
			return err
		}
	} else {
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(ca)
		if err != nil {
			return err
		}
		pool.AppendCertsFromPEM(pem)
		srv.Client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableCompression: true}}
	}
	total, equal := 0, 0
	for _, file := range files {
		s, err := recorded.Load(file)
		if err != nil {
			return err
		}
		good := 0
		results := recorded.Replay(ctx, srv, s)
		for _, r := range results {
			if r.Equal() {
				good++
			} else if verbose {
				fmt.Printf("  %s step %d %s\n", s.Name, r.Index, r.Do)
				for _, d := range r.Diff {
					fmt.Printf("      %s\n", d)
				}
			}
		}
		fmt.Printf("%4d of %4d  %s\n", good, len(results), s.Name)
		total, equal = total+len(results), equal+good
	}
	fmt.Printf("%4d of %4d  all\n", equal, total)
	return nil
}
