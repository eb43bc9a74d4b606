package access

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
)

// maxReadiness limits the bytes read of an answer of /readyz.
const maxReadiness = 64 << 10

// readyOptions are the flags of ready.
type readyOptions struct {
	dataDir, server string
	timeout         time.Duration
}

func ReadyCommand() *cobra.Command {
	o := &readyOptions{}
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Check whether a running server is ready (/readyz)",
		Long: `Check whether the server of a data directory is ready, as a load balancer does with
GET /readyz. The exit code is 0 if it is; otherwise it is 1, and the failing checks are
printed to standard error. For health checks of containers without a shell and curl.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dataDir, "data-dir", program.DefaultDataDir, "folder of the server, with its admin.kubeconfig")
	f.StringVar(&o.server, "server", "", "URL of the server (default: as in admin.kubeconfig)")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "how long to wait for the answer")
	return cmd
}

func (o *readyOptions) run(ctx context.Context, out io.Writer) error {
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout %s: want a duration above 0, such as 5s", o.timeout)
	}
	admin := flagfile.New("--data-dir", filepath.Join(o.dataDir, "admin.kubeconfig"))
	cfg, err := clientcmd.BuildConfigFromFlags(o.server, admin.Path)
	if err != nil {
		return admin.Wrap(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return admin.Wrap(err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(cfg.Host, "/")+"/readyz?verbose", nil)
	if err != nil {
		return fmt.Errorf("--server %s: %w", o.server, err)
	}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("not ready: no answer from the server: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxReadiness))
	if err != nil {
		return fmt.Errorf("not ready: reading the answer of %s: %w", cfg.Host, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s answers %s to /readyz: %s", cfg.Host, res.Status, failedChecks(body))
	}
	_, err = fmt.Fprintln(out, "ready")
	return err
}

// failedChecks returns the failed checks of an answer; the whole answer if it lists none.
func failedChecks(body []byte) string {
	var failed []string
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if line, ok := strings.CutPrefix(lines.Text(), "[-]"); ok {
			failed = append(failed, line)
		}
	}
	if len(failed) == 0 {
		return display.Safe(strings.TrimSpace(string(body)))
	}
	return display.Safe(strings.Join(failed, "; "))
}
