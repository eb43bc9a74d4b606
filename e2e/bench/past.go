package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // for the size of a file

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

const (
	week      = 7 * 24 * time.Hour
	leaseKind = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"NODE","namespace":"kube-node-lease","uid":"7a0f2c9e-51d7-4b06-8b2c-6d8f3a1e4b5c","creationTimestamp":"2026-03-01T00:00:00Z","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"NODE","uid":"0c1d2e3f-4a5b-6c7d-8e9f-0a1b2c3d4e5f"}],"managedFields":[{"manager":"kubelet","operation":"Update","apiVersion":"coordination.k8s.io/v1","time":"TIME","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"0c1d2e3f-4a5b-6c7d-8e9f-0a1b2c3d4e5f\"}":{}}},"f:spec":{"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:renewTime":{}}}}]},"spec":{"holderIdentity":"NODE","leaseDurationSeconds":40,"renewTime":"MICRO"}}`
	condition = `{"type":"KIND","status":"False","lastHeartbeatTime":"TIME","lastTransitionTime":"2026-03-01T00:00:00Z","reason":"KubeletHasSufficientKIND","message":"kubelet has sufficient KIND available"},`
	nodeKind  = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"NODE","uid":"0c1d2e3f-4a5b-6c7d-8e9f-0a1b2c3d4e5f","creationTimestamp":"2026-03-01T00:00:00Z","labels":{"kubernetes.io/arch":"amd64","kubernetes.io/hostname":"NODE","kubernetes.io/os":"linux"},"managedFields":[{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"TIME","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{}}},"subresource":"status"}]},"spec":{"podCIDR":"10.244.1.0/24"},"status":{"capacity":{"cpu":"8","memory":"32768Mi","pods":"110"},"conditions":[CONDITIONS],"addresses":[{"type":"InternalIP","address":"10.0.0.1"}],"images":[IMAGES]}}`
)

// beats describes a week of periodic writes by some nodes.
type beats struct {
	name, resource, namespace, value string
	every                            time.Duration
	nodes                            int
}

func (e *env) beats() []beats {
	var conditions string
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		conditions += strings.ReplaceAll(condition, "KIND", kind)
	}
	image := `{"names":["registry.example.com/team/image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"],"sizeBytes":123456789},`
	node := strings.NewReplacer("CONDITIONS", strings.TrimSuffix(conditions, ","), "IMAGES", strings.TrimSuffix(strings.Repeat(image, 20), ",")).Replace(nodeKind)
	return []beats{
		{"leases, each 10 s", "leases.coordination.k8s.io", "kube-node-lease", leaseKind, 10 * time.Second, e.history},
		{"node status, each 1 min", "nodes", "", node, time.Minute, max(1, e.history/5)},
	}
}

// rows returns all writes in order; the last one is the live row.
func (b *beats) rows(yield func(sqlstore.Row, error) bool) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 123456000, time.UTC)
	nodes, n := int64(b.nodes), int64(b.nodes)*int64(week/b.every)
	for r := int64(1); r <= n; r++ {
		node := fmt.Sprintf("node-%04d", r%nodes)
		at := start.Add(time.Duration((r-1)/nodes)*b.every + time.Duration(r%nodes)*time.Millisecond*7)
		value := strings.NewReplacer("NODE", node, "TIME", at.Format(time.RFC3339), "MICRO", at.Format("2006-01-02T15:04:05.000000Z")).Replace(b.value)
		row := sqlstore.Row{Key: sqlstore.Key{Resource: b.resource, Namespace: b.namespace, Name: node}, Revision: r, Created: (r-1)%nodes + 1, Value: []byte(value), WrittenAt: at}
		if r+nodes <= n {
			row.Superseded = r + nodes
		}
		if !yield(row, nil) {
			return
		}
	}
}

// measureHistory measures the size of a week of heartbeats on disk, indexes included, before and after packing, and
// the cost of packing.
func measureHistory(e *env) error {
	for _, b := range e.beats() {
		if err := e.weigh(&b); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) weigh(b *beats) error {
	dir, err := os.MkdirTemp("", "bench-history-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d, weight, err := e.scale(filepath.Join(dir, "week.db"))
	if err != nil {
		return err
	}
	defer d.Close()
	head := int64(b.nodes) * int64(week/b.every)
	content := sqlstore.Content{Bounds: sqlstore.Bounds{Head: head}, Rows: b.rows}
	if err := d.Load(e.ctx, content); err != nil {
		return err
	}
	before, err := weight(e.ctx)
	if err != nil {
		return err
	}
	for to := (sqlstore.Floors{Log: head, Past: map[string]int64{"": 0}}); ; {
		f, err := d.Retain(e.ctx, to)
		if err != nil {
			return err
		}
		if f.Log == head {
			break
		}
	}
	rows, began, longest := 0, time.Now(), time.Duration(0)
	last, cpu := began, processorTime(os.Getpid())
	err = sqlstore.Pack(e.ctx, d, 0, func(p sqlstore.Packed) {
		rows += p.Rows
		longest, last = max(longest, time.Since(last)), time.Now()
	})
	if err != nil {
		return err
	}
	took, used := time.Since(began), processorTime(os.Getpid())-cpu
	after, err := weight(e.ctx)
	if err != nil {
		return err
	}
	e.report("history: "+b.name, "%d revisions: %d bytes each unpacked, %d packed; packed at %.0f a second, %.0f us of this process each, a transaction and its reading at most %v",
		head, before/head, after/head, float64(rows)/took.Seconds(), float64(used.Microseconds())/float64(rows), longest.Round(time.Millisecond))
	return nil
}

// scale opens a database, and returns a function that compacts it and returns its size.
func (e *env) scale(path string) (sqlstore.Driver, func(context.Context) (int64, error), error) {
	if e.pg == nil {
		d, err := sqlite.Open(e.ctx, path, sqlite.Config{Unsynced: true})
		return d, func(ctx context.Context) (int64, error) { return weighFile(ctx, path) }, err
	}
	url, err := e.newStore("")
	if err != nil {
		return nil, nil, err
	}
	d, err := postgres.Open(e.ctx, url, postgres.Config{StatementTimeout: time.Hour})
	return d, func(ctx context.Context) (size int64, err error) {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return 0, err
		}
		defer conn.Close(ctx)
		for _, table := range []string{"kv", "kv_packed", "kv_marks"} {
			if _, err := conn.Exec(ctx, "VACUUM FULL "+table); err != nil {
				return 0, err
			}
		}
		err = conn.QueryRow(ctx, "SELECT pg_total_relation_size('kv') + pg_total_relation_size('kv_packed') + pg_total_relation_size('kv_marks')").Scan(&size)
		return size, err
	}, err
}

func weighFile(ctx context.Context, path string) (int64, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", path+".weighed"); err != nil {
		return 0, err
	}
	defer os.Remove(path + ".weighed")
	info, err := os.Stat(path + ".weighed")
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
