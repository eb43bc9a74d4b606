package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	tableType    = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

func measureLists(e *env) error {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	account(s)
	err = fill(s, 5000, pods, func(i int) []byte {
		return pod(fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i%100), fmt.Sprintf("a%d", i%50))
	})
	if err != nil {
		return err
	}
	e.report("resident with 5,000 Pods", "%.0f MB", resident(s.Pid()))
	for _, l := range []struct{ name, query, accept string }{
		{"list 5,000 Pods as JSON", "", ""},
		{"list 5,000 Pods as Protobuf", "", protobufType},
		{"list 5,000 Pods as Table", "", tableType},
		{"list by label (2%)", "?labelSelector=app%3Da7", ""},
		{"list by node name", "?fieldSelector=spec.nodeName%3Dn7", ""},
	} {
		r, err := drive(s, 4, e.seconds, func(c *client, _, _ int) (int64, error) { return c.do("GET", pods+l.query, "", l.accept, nil) })
		if err != nil {
			return err
		}
		e.report(l.name+", 4 clients", "%8.1f/s   %.0f MB/s   p50 %v   cpu %v", r.rate, r.bytes/1e6, r.p50, r.cpu)
		if l.name == "list 5,000 Pods as JSON" {
			bare, err := e.bare(s, 4, int64(r.bytes/r.rate))
			if err != nil {
				return err
			}
			e.report("  the same bytes from a bare server", "%8.1f/s", bare.rate)
		}
	}
	r, err := drive(s, 4, e.seconds, func(c *client, _, _ int) (int64, error) { return walk(c, 500) })
	if err != nil {
		return err
	}
	e.report("walk 5,000 Pods in pages of 500, 4 clients", "%8.1f/s   cpu %v", r.rate, r.cpu)
	e.report("resident after all of it", "%.0f MB", resident(s.Pid()))
	return nil
}

// walk reads all pages.
func walk(c *client, limit int) (int64, error) {
	var total int64
	token := ""
	for {
		req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s%s?limit=%d&continue=%s", c.url, pods, limit, token), nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		resp, err := c.c.Do(req)
		if err != nil {
			return 0, err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("page: %d %w", resp.StatusCode, err)
		}
		total += int64(len(body))
		// The list's metadata stands before its items.
		var head struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(body[:min(len(body), metadataEnd(body))], &head); err != nil {
			return 0, err
		}
		if token = head.Metadata.Continue; token == "" {
			return total, nil
		}
	}
}

// metadataEnd cuts a list behind its metadata and closes it, in place.
func metadataEnd(body []byte) int {
	for i := range body {
		if i > 9 && string(body[i-9:i]) == `,"items":` {
			body[i-9] = '}'
			return i - 8
		}
	}
	return len(body)
}
