package store

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// statusAnswer is the result for --output json.
type statusAnswer struct {
	Store             string     `json:"store"`
	Driver            string     `json:"driver"`
	ServerVersion     string     `json:"serverVersion"`
	SchemaVersion     uint       `json:"schemaVersion"`
	ClusterID         string     `json:"clusterID"`
	Revision          int64      `json:"revision"`
	CompactedRevision int64      `json:"compactedRevision"`
	OldestSnapshot    *time.Time `json:"oldestSnapshot"`
	Objects           int64      `json:"objects"`
	HistoryRows       int64      `json:"historyRows"`
	PackedRows        int64      `json:"packedRows"`
	Packs             int64      `json:"packs"`
	// PastRevisions are from which revision on lists at an exact one are answered, by resource, as
	// --history-retention names them; * is the rest.
	PastRevisions map[string]int64         `json:"pastRevisions"`
	DatabaseBytes int64                    `json:"databaseBytes"`
	Served        bool                     `json:"served"`
	Feed          feedAnswer               `json:"feed"`
	Resources     []database.ResourceCount `json:"resources"`
}

// feedAnswer is a server's position in the log, which only that server knows.
type feedAnswer struct {
	Server  string `json:"server,omitempty"` // the server that was queried; empty: none is known here
	Applied *int64 `json:"applied"`          // the newest revision that its readers see
	Lag     *int64 `json:"lag"`              // in revisions
	Reason  string `json:"reason,omitempty"` // why the two are null
}

func statusCommand(o *database.Options) *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the content of the database and the range of its history",
		Long: `Show the content of the database and the range of its history.

The lag of a server is known only to that server: the command reads it from the metrics
of the server in the kubeconfig.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.With(cmd.Context(), database.AsIs, "nothing was changed", func(d sqlstore.Driver) error {
				s, err := upkeep.Look(cmd.Context(), d)
				if err != nil {
					return err
				}
				kubeconfig = cmp.Or(kubeconfig, filepath.Join(o.DataDir, "admin.kubeconfig"))
				a := newStatusAnswer(database.PublicURL(o.URL()), s)
				a.Feed = readFeed(cmd.Context(), kubeconfig, s.Bounds.Head)
				return o.Answer(o.Out, a, a.table)
			})
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the server whose lag to show (default <data-dir>/admin.kubeconfig)")
	return cmd
}

func newStatusAnswer(url string, s upkeep.Status) *statusAnswer {
	a := &statusAnswer{
		Store: url, Driver: s.Driver, ServerVersion: s.ServerVersion, SchemaVersion: s.SchemaVersion, ClusterID: s.ClusterID,
		Revision: s.Bounds.Head, CompactedRevision: s.Bounds.Floor, Objects: s.LiveRows, HistoryRows: s.HistoryRows,
		DatabaseBytes: s.Bytes, Served: s.Served, Resources: []database.ResourceCount{},
	}
	a.PackedRows, a.Packs, a.PastRevisions = s.PackedRows, s.Packs, map[string]int64{"*": s.Floors.Log}
	for name, floor := range s.Floors.Past {
		a.PastRevisions[cmp.Or(name, "*")] = floor
	}
	if !s.OldestSnapshot.IsZero() {
		a.OldestSnapshot = &s.OldestSnapshot
	}
	for _, r := range s.Resources {
		a.Resources = append(a.Resources, database.ResourceCount(r))
	}
	return a
}

func (a *statusAnswer) table(w io.Writer) {
	oldest := "-"
	if a.OldestSnapshot != nil {
		oldest = fmt.Sprintf("%s (%s ago)", cli.Time(*a.OldestSnapshot), time.Since(*a.OldestSnapshot).Round(time.Second))
	}
	served := "by no server now"
	if a.Served {
		served = "by a running server"
	}
	fmt.Fprintf(w, "STORE\t%s\n", a.Store)
	fmt.Fprintf(w, "DRIVER\t%s (%s)\n", a.Driver, a.ServerVersion)
	fmt.Fprintf(w, "SCHEMA\t%d\n", a.SchemaVersion)
	fmt.Fprintf(w, "CLUSTER ID\t%s\n", a.ClusterID)
	fmt.Fprintf(w, "REVISION\t%d\n", a.Revision)
	fmt.Fprintf(w, "COMPACTED\t%d\n", a.CompactedRevision)
	fmt.Fprintf(w, "OLDEST SNAPSHOT\t%s\n", oldest)
	fmt.Fprintf(w, "OBJECTS\t%d\n", a.Objects)
	fmt.Fprintf(w, "HISTORY\t%d rows\n", a.HistoryRows)
	fmt.Fprintf(w, "PACKED\t%d rows in %d packs\n", a.PackedRows, a.Packs)
	fmt.Fprintf(w, "HISTORY FROM\t%s\n", a.past())
	fmt.Fprintf(w, "DATABASE\t%s\n", cli.Size(a.DatabaseBytes))
	fmt.Fprintf(w, "COMPACTION\t%s\n", served)
	if a.Feed.Lag != nil {
		fmt.Fprintf(w, "FEED\t%s has revision %d, %d behind\n", a.Feed.Server, *a.Feed.Applied, *a.Feed.Lag)
	} else {
		fmt.Fprintf(w, "FEED\tnot known here: %s\n", a.Feed.Reason)
	}
	fmt.Fprintf(w, "\nRESOURCE\tOBJECTS\tBYTES\n")
	for _, r := range a.Resources {
		fmt.Fprintf(w, "%s\t%d\t%s\n", r.Resource, r.Objects, cli.Size(r.Bytes))
	}
}

func (a *statusAnswer) past() string {
	names := slices.Sorted(maps.Keys(a.PastRevisions)) // of which * is the first
	for i, name := range names {
		names[i] = fmt.Sprintf("%s=%d", name, a.PastRevisions[name])
	}
	return strings.Join(names, ",")
}

// readFeed requests the newest revision that the server of a kubeconfig has applied, and compares it with head.
func readFeed(ctx context.Context, kubeconfig string, head int64) feedAnswer {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return feedAnswer{Reason: fmt.Sprintf("%s names no server; each server tells it at /metrics (rowlock_store_lag_revisions)", kubeconfig)}
	}
	a := feedAnswer{Server: cfg.Host}
	applied, err := readGauge(ctx, cfg, "rowlock_store_revision")
	if err != nil {
		a.Reason = fmt.Sprintf("%s does not tell: %v", cfg.Host, err)
		return a
	}
	lag := max(0, head-applied)
	a.Applied, a.Lag = &applied, &lag
	return a
}

func readGauge(ctx context.Context, cfg *rest.Config, name string) (int64, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(cfg.Host, "/")+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	var wrapped *url.Error // which repeats the URL
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("/metrics answers %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, err := strconv.ParseFloat(text, 64)
			return int64(n), err
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("/metrics has no %s", name)
}
