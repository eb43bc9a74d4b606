//go:build unix

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/rowlock/rowlock/e2e/harness"
)

// Alive asks a server, around its proxy, for an answer that needs no database.
func (c *Cluster) Alive(ctx context.Context, client *http.Client, i int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/livez/ping", c.nodes[i].options.Port), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
