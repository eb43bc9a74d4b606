//go:build unix

// Package h2clients runs HTTP/2 clients against the built binary: curl (nghttp2), and those of Go, Node, Python
// (httpx on h2) and Java.
package h2clients

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
)

// patience bounds how long each step may take on a busy machine.
const patience = 3 * time.Minute

// TestClients: each client creates an object of 1 MB, lists it, and watches another one. When the server
// drains, the watch ends as a complete response, without an error of the client. The test does not
// check that of Java's client: before JDK 24 it fails all requests of a connection when GOAWAY arrives (JDK-8335181).
func TestClients(t *testing.T) {
	for name, command := range map[string][]string{
		"curl": {"sh", "curl.sh"}, "go": {"go", "run", "client.go"}, "node": {"node", "node.mjs"}, "python": {"python3", "client.py"}, "java": {"java", "Client.java"},
	} {
		t.Run(name, func(t *testing.T) {
			var program string
			switch name {
			case "python":
				program = needs.Python(t, "httpx", "h2")
			case "curl":
				needs.Program(t, "curl")
				fallthrough
			default:
				program = needs.Program(t, command[0])
			}
			s := harness.StartT(t, harness.Options{Args: []string{"--http2=own"}})
			client, err := s.Client()
			if err != nil {
				t.Fatal(err)
			}
			send := func(method, path, value string) {
				t.Helper()
				body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"small"},"data":{"a":%q}}`, value)
				r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/v1/namespaces/default/configmaps"+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
				r.Header.Set("Content-Type", "application/json")
				answer, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if _ = answer.Body.Close(); answer.StatusCode >= 300 {
					t.Fatal(answer.Status)
				}
			}
			args := append(command[1:], s.URL, harness.AdminToken, filepath.Join(s.DataDir, "ca.crt"))
			cmd := exec.CommandContext(t.Context(), program, args...)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := make(chan string, 10)
			go func() {
				defer close(lines)
				for scanner := bufio.NewScanner(out); scanner.Scan(); {
					lines <- scanner.Text()
				}
			}()
			next := func(want string) {
				t.Helper()
				select {
				case line := <-lines:
					if line != want {
						t.Fatalf("the client says %.300q, want %q", line, want)
					}
				case <-time.After(patience):
					t.Fatalf("the client does not say %q", want)
				}
			}
			next("created 201")
			next("listed 200 true")
			send("POST", "", "one")
			next("event ADDED one")
			send("PUT", "/small", "two")
			next("event MODIFIED two")
			if name == "java" {
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
				_ = cmd.Wait() // it was killed
				return
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			next("drained true")
			for line := range lines {
				t.Errorf("the client says %q", line)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
