package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestWatchDelivery: with each implementation and either protocol, a watch misses no event, whether or not
// the client reads them at once, and the metrics name the implementation.
func TestWatchDelivery(t *testing.T) {
	t.Parallel()
	for mode, implementation := range map[string]string{"own": "detached", "standard": "handler"} {
		t.Run(mode, func(t *testing.T) {
			s := harness.StartT(t, harness.Options{Args: []string{"--http2=" + mode}})
			for _, two := range []bool{false, true} {
				for _, slow := range []bool{false, true} {
					t.Run(fmt.Sprintf("http2=%v slow=%v", two, slow), func(t *testing.T) {
						watchConfigMaps(t, s, two, slow)
					})
				}
			}
			text := asAdmin(t, s, "GET", "/metrics", "").body
			for _, want := range []string{
				`rowlock_watch_delivery_watches_total{implementation="` + implementation + `",protocol="HTTP/1.1"} 2`,
				`rowlock_watch_delivery_watches_total{implementation="` + implementation + `",protocol="HTTP/2"} 2`,
			} {
				if !regexp.MustCompile("(?m)^" + regexp.QuoteMeta(want) + "$").MatchString(text) {
					t.Errorf("the metrics lack %s", want)
				}
			}
		})
	}
}

// watchConfigMaps sees every change of a ConfigMap, of which some are large.
func watchConfigMaps(t *testing.T, s *harness.Server, two, slow bool) {
	const path, events, largeEvery = "/api/v1/namespaces/default/configmaps", 60, 3
	created := asAdmin(t, s, "POST", path, `{"metadata":{"generateName":"c"}}`)
	var made struct {
		Metadata struct{ Name, ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(created.body), &made); err != nil || created.code != 201 {
		t.Fatal(created, err)
	}
	query := "?watch=1&fieldSelector=metadata.name%3D" + made.Metadata.Name + "&resourceVersion=" + made.Metadata.ResourceVersion
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := s.ClientOf(t, two).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if two != (resp.ProtoMajor == 2) || resp.StatusCode != 200 {
		t.Fatal(resp.Proto, resp.Status)
	}
	var want, got []string
	large := strings.Repeat("x", 300<<10)
	for i := range events {
		data := "small"
		if i%largeEvery == 0 {
			data = large
		}
		a := asAdmin(t, s, "PUT", path+"/"+made.Metadata.Name, fmt.Sprintf(`{"metadata":{"name":%q},"data":{"i":"%d","a":%q}}`, made.Metadata.Name, i, data))
		if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.code != 200 {
			t.Fatal(a, err)
		}
		want = append(want, made.Metadata.ResourceVersion)
	}
	if slow {
		time.Sleep(time.Second) // until buffers are full; the test holds without as well
	}
	lines := bufio.NewReader(resp.Body)
	for len(got) < events {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("after %d events: %v", len(got), err)
		}
		var e struct {
			Type   string
			Object struct {
				Metadata struct{ ResourceVersion string }
			}
		}
		if err := json.Unmarshal(line, &e); err != nil || e.Type != "MODIFIED" {
			t.Fatalf("%.200s: %v", line, err)
		}
		got = append(got, e.Object.Metadata.ResourceVersion)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestHTTP2Flag: an unknown HTTP/2 implementation stops the start. The server accepts a flag of earlier releases with a warning.
func TestHTTP2Flag(t *testing.T) {
	t.Parallel()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{
		"--http2=pigeon":            `--http2 "pigeon": want own or standard`,
		"--watch-delivery=pigeon":   `--watch-delivery "pigeon": want direct or standard`,
		"--watch-delivery=standard": "Flag --watch-delivery has been deprecated, use --http2=standard",
	} {
		cmd := exec.CommandContext(t.Context(), bin, "serve", "--data-dir", "/dev/null/none", flag) // which stops it at the latest
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s", flag, err, out)
		}
	}
}
