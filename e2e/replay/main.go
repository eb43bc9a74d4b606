// Command replay compares recorded answers with those of a server: a running one named by --url, or servers that it
// builds and starts with the flags of the scenarios.
//
//	go run ./e2e/replay [-v] [-record FILE] [-release RELEASE] [-store URL] [-url URL -ca FILE -token TOKEN] FILE...
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/rowlock/rowlock/e2e/extension"
	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/recorded"
)

func main() {
	url := flag.String("url", "", "server to ask; empty: start a fresh one")
	ca := flag.String("ca", "", "CA certificate of --url")
	token := flag.String("token", harness.AdminToken, "token of user admin in group system:masters")
	store := flag.String("store", "", "--store of the fresh server")
	verbose := flag.Bool("v", false, "print every difference")
	release := flag.String("release", "", "release of the answers, which fresh servers emulate; empty: 1.32")
	record := flag.String("record", "", "file to write the answers to that differ, by scenario and step")
	flag.Parse()
	if err := run(*url, *ca, *token, *store, *release, *record, *verbose, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

func run(url, ca, token, store, release, record string, verbose bool, files []string) error {
	ctx := context.Background()
	var list []*recorded.Scenario
	for _, file := range files {
		s, err := recorded.Load(file)
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	if release != "" {
		releases, err := recorded.LoadReleases("e2e/testdata/releases/answers.json.gz")
		if err != nil {
			return err
		}
		list = releases.Of(release, list)
	}
	n := count{answers: map[string]map[int]*recorded.Want{}}
	if slices.ContainsFunc(list, func(s *recorded.Scenario) bool { return len(s.Vars) > 0 }) {
		e, err := extension.Start()
		if err != nil {
			return err
		}
		defer e.Close()
		n.vars = e.Vars()
	}
	if url != "" {
		client, err := trusting(ca)
		if err != nil {
			return err
		}
		n.replay(ctx, recorded.Server{URL: url, Token: token, Client: client, Vars: n.vars}, list, verbose)
	} else {
		defer harness.Cleanup()
		for _, group := range recorded.ByFlags(list) {
			if err := n.fresh(ctx, token, store, group, verbose); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%4d of %4d  all\n", n.equal, n.total)
	if record == "" {
		return nil
	}
	text, err := json.Marshal(n.answers)
	if err != nil {
		return err
	}
	return os.WriteFile(record, text, 0o644)
}

// trusting makes a client of a running server.
func trusting(ca string) (*http.Client, error) {
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool.AppendCertsFromPEM(pem)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableCompression: true}}, nil
}

type count struct {
	equal, total int
	vars         map[string]string                 // values of the variables in scenarios
	answers      map[string]map[int]*recorded.Want // the answers that differ
}

// fresh replays scenarios that need the same flags against a server of their own.
func (n *count) fresh(ctx context.Context, token, store string, group []*recorded.Scenario, verbose bool) error {
	dir, err := os.MkdirTemp("", "replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	flags, events, err := group[0].AuditLog(dir)
	if err != nil {
		return err
	}
	s, err := harness.Start(ctx, harness.Options{Dir: dir, Store: store, Args: append(flags, group[0].Flags()...)})
	if err != nil {
		return err
	}
	defer s.Kill()
	client, err := s.Client()
	if err != nil {
		return err
	}
	n.replay(ctx, recorded.Server{URL: s.URL, Token: token, Client: client, Vars: n.vars, Events: events}, group, verbose)
	return nil
}

func (n *count) replay(ctx context.Context, srv recorded.Server, list []*recorded.Scenario, verbose bool) {
	for _, s := range list {
		good := 0
		results := recorded.Replay(ctx, srv, s)
		for _, r := range results {
			if r.Equal() {
				good++
				continue
			}
			if r.Got != nil {
				if n.answers[s.Name] == nil {
					n.answers[s.Name] = map[int]*recorded.Want{}
				}
				n.answers[s.Name][r.Index] = r.Got
			}
			if verbose {
				fmt.Printf("  %s step %d %s\n", s.Name, r.Index, r.Do)
				for _, d := range r.Diff {
					fmt.Printf("      %s\n", d)
				}
			}
		}
		fmt.Printf("%4d of %4d  %s\n", good, len(results), s.Name)
		n.total, n.equal = n.total+len(results), n.equal+good
	}
}
