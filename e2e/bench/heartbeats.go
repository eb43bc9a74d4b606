package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	beatLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	beatNodes  = 1000
)

// beatLease returns the lease of a node after i renewals, 10 s apart. No Node owns it: the garbage collector would
// delete it.
func beatLease(node string, i int) []byte {
	at := time.Date(2026, 3, 1, 0, 0, 0, 123456000, time.UTC).Add(time.Duration(i) * 10 * time.Second)
	return fmt.Appendf(nil, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q,"labels":{"node.example.com/uid":"0c1d2e3f-4a5b-6c7d-8e9f-0a1b2c3d4e5f"}},"spec":{"holderIdentity":%q,"leaseDurationSeconds":40,"renewTime":%q}}`,
		node, node, at.Format("2006-01-02T15:04:05.000000Z"))
}

// measureHeartbeats renews the leases of 1,000 nodes ten times as often as kubelets do, with a server that keeps all
// history, one that deletes it after seconds, and one that packs it after seconds. It measures the latency of
// writes, and with packing the backlog of the packer, the size of a revision, and the latency of reads. Servers look
// for old history once a minute, so -seconds must be some minutes.
func measureHeartbeats(e *env) error {
	for _, variant := range []struct {
		name string
		args []string
	}{
		{"nothing is compacted", []string{"--history-retention=1h", "--history-log-retention=1h"}},
		{"deleted after 5 s", []string{"--history-retention=5s"}},
		{"packed after 5 s, kept 7 d", []string{"--history-retention=7d", "--history-log-retention=5s"}},
	} {
		if !e.only.MatchString(variant.name) {
			continue
		}
		var all []paced
		for range e.pairs {
			p, err := e.beat(variant.name, variant.args)
			if err != nil {
				return fmt.Errorf("%s: %w", variant.name, err)
			}
			all = append(all, p)
		}
		slices.SortFunc(all, func(a, b paced) int { return int(a.p99 - b.p99) })
		m := all[len(all)/2]
		e.report(fmt.Sprintf("%d renewals/s, %s", backupRate, variant.name), "%.0f/s   p50 %v   p99 %v (%v to %v)   cpu %v a second",
			m.rate, m.p50.Round(10*time.Microsecond), m.p99.Round(10*time.Microsecond), all[0].p99.Round(10*time.Microsecond), all[len(all)-1].p99.Round(10*time.Microsecond), m.cpu.Round(time.Millisecond))
	}
	return nil
}

func (e *env) beat(name string, args []string) (p paced, err error) {
	s, stop, err := e.start(args...)
	if err != nil {
		return p, err
	}
	defer stop()
	node := func(n int) string { return fmt.Sprintf("node-%04d", n%beatNodes) }
	if err := fill(s, beatNodes, beatLeases, func(i int) []byte { return beatLease(node(i), 0) }); err != nil {
		return p, err
	}
	p, err = e.pace(s, 0, func(c *client, n int) error {
		_, err := c.do("PATCH", beatLeases+"/"+node(n), "application/merge-patch+json", "", beatLease(node(n), 1+n/beatNodes))
		return err
	})
	if err != nil || !strings.Contains(name, "7 d") {
		return p, err
	}
	return p, e.beaten(s)
}

// storeStatus is a part of the output of `store status`.
type storeStatus struct{ Revision, CompactedRevision, HistoryRows, PackedRows, Packs, DatabaseBytes int64 }

// beaten reports the state of packing after the writers have stopped.
func (e *env) beaten(s *harness.Server) error {
	var at storeStatus
	if err := runStore(s, &at, "status"); err != nil {
		return err
	}
	behind := at.HistoryRows
	began := time.Now()
	for at.HistoryRows > 0 && time.Since(began) < time.Minute {
		time.Sleep(time.Second)
		if err := runStore(s, &at, "status"); err != nil {
			return err
		}
	}
	e.report("    packed", "%d rows unpacked when writers stopped, %d after %v; %d states in %d packs; %d bytes of the database, free pages included, for each",
		behind, at.HistoryRows, time.Since(began).Round(time.Second), at.PackedRows, at.Packs, at.DatabaseBytes/max(1, at.PackedRows))
	if at.PackedRows == 0 {
		return errors.New("nothing was packed")
	}
	c, err := newClient(s)
	if err != nil {
		return err
	}
	var one, page []time.Duration
	for i := range 50 {
		revision := at.Revision - at.PackedRows*int64(i+1)/52
		for path, times := range map[string]*[]time.Duration{
			fmt.Sprintf("%s?resourceVersion=%d&resourceVersionMatch=Exact&limit=500", beatLeases, revision):                                                    &page,
			fmt.Sprintf("/apis/history.rowlock.dev/v1/namespaces/kube-node-lease/revisions/leases.coordination.k8s.io:node-%04d:%d", i*17%beatNodes, revision): &one,
		} {
			t := time.Now()
			if _, err := c.do("GET", path, "", "", nil); err != nil {
				return err
			}
			*times = append(*times, time.Since(t))
		}
	}
	slices.Sort(one)
	slices.Sort(page)
	began = time.Now()
	var report struct{ Count, Older int64 }
	if err := runStore(s, &report, "verify"); err != nil {
		return err
	}
	e.report("    read", "one state p50 %v, most %v; a page of 500 p50 %v, most %v; store verify of %d past states, %d problems: %v",
		one[25].Round(10*time.Microsecond), one[49].Round(10*time.Microsecond), page[25].Round(10*time.Microsecond), page[49].Round(10*time.Microsecond), report.Older, report.Count, time.Since(began).Round(10*time.Millisecond))
	return nil
}

// runStore runs a `store` command on the database of a server, and decodes its output.
func runStore(s *harness.Server, into any, command string) error {
	bin, err := harness.Binary()
	if err != nil {
		return err
	}
	out, err := exec.Command(bin, "store", command, "--store", s.Options().Store, "--output=json").Output()
	if err != nil {
		return fmt.Errorf("store %s: %w: %s", command, err, out)
	}
	return json.Unmarshal(out, into)
}
