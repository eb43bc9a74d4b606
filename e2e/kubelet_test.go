package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"

	"github.com/rowlock/rowlock/e2e/harness"
)

// kubelet is a node agent that answers as one: logs as text, commands and ports over
// SPDY. It knows no WebSockets, which kubectl tries first.
func kubelet(w http.ResponseWriter, r *http.Request) {
	if len(r.TLS.PeerCertificates) != 1 || r.TLS.PeerCertificates[0].Subject.CommonName != "the-server" {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/containerLogs/"):
		fmt.Fprintf(w, "log of %s\n", r.URL)
	case !strings.EqualFold(r.Header.Get("Upgrade"), spdy.HeaderSpdy31):
		http.Error(w, "requested protocol(s) are not supported", http.StatusForbidden)
	case strings.HasPrefix(r.URL.Path, "/exec/"):
		command(w, r)
	case strings.HasPrefix(r.URL.Path, "/portForward/"):
		ports(w, r)
	}
}

// streams takes the connection over and hands out its streams as they come.
func streams(w http.ResponseWriter, r *http.Request, protocol string) (httpstream.Connection, <-chan httpstream.Stream) {
	if _, err := httpstream.Handshake(r, w, []string{protocol}); err != nil {
		return nil, nil
	}
	come := make(chan httpstream.Stream, 10)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		come <- s
		return nil
	})
	return conn, come
}

func command(w http.ResponseWriter, r *http.Request) {
	conn, come := streams(w, r, "v4.channel.k8s.io")
	if conn == nil {
		return
	}
	defer conn.Close()
	wanted := 1 // errors
	for _, name := range []string{"input", "output", "error"} {
		if r.URL.Query().Get(name) == "1" {
			wanted++
		}
	}
	byType := map[string]httpstream.Stream{}
	for len(byType) < wanted {
		s := <-come
		byType[s.Headers().Get("streamType")] = s
	}
	if in := byType["stdin"]; in != nil {
		_, _ = io.Copy(byType["stdout"], in)
	}
	fmt.Fprintf(byType["stdout"], "ran %s in %s\n", r.URL.Query()["command"], r.URL.Path)
	fmt.Fprint(byType["error"], `{"status": "Failure", "reason": "NonZeroExitCode", "message": "command terminated", "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}}`)
	for _, s := range byType {
		s.Close()
	}
	<-conn.CloseChan() // the client has read all and leaves
}

func ports(w http.ResponseWriter, r *http.Request) {
	conn, come := streams(w, r, "portforward.k8s.io")
	if conn == nil {
		return
	}
	defer conn.Close()
	for {
		select {
		case s := <-come:
			if s.Headers().Get("streamType") == "data" {
				line, _ := bufio.NewReader(s).ReadString('\n')
				fmt.Fprintf(s, "port %s got %s", s.Headers().Get("port"), line)
				s.Close()
			} else {
				s.Close()
			}
		case <-conn.CloseChan():
			return
		}
	}
}

// TestKubelet has kubectl read logs, run commands and forward ports on a node whose
// agent checks the server's certificate, as the server does the agent's.
func TestKubelet(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(kubelet))
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, NextProtos: []string{"http/1.1"}}
	srv.StartTLS()
	defer srv.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := selfSigned(t, dir, "the-server")
	s := harness.StartT(t, harness.Options{Args: []string{
		"--kubelet-client-certificate", cert, "--kubelet-client-key", key, "--kubelet-certificate-authority", ca,
		"--kubelet-preferred-address-types", "InternalIP",
	}})
	k := s.Kubectl(t)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	apply := func(text string) {
		t.Helper()
		if out, err := k.Try(text, "create", "-f", "-"); err != nil {
			t.Fatal(err, out)
		}
	}
	apply(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {
		"addresses": [{"type": "Hostname", "address": "unknown.example"}, {"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": ` + port + `}}}}`)
	apply(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false}}`)
	k.Run("patch", "pod", "p", "--subresource=status", "--type=merge", "-p", `{"status": {"phase": "Running"}}`)

	k.Want([]string{"log of /containerLogs/default/p/c?tailLines=3"}, "logs", "p", "--tail=3")
	k.Want([]string{"log of /containerLogs/default/p/c?follow=true"}, "logs", "-f", "p")
	out, err := k.Try("typed\n", "exec", "-i", "p", "--", "sh", "-c", "exit 7")
	if err == nil || !strings.HasPrefix(out, "typed\nran [sh -c exit 7] in /exec/default/p/c\n") || !strings.Contains(out, "exit code 7") {
		t.Errorf("exec: %q, %v", out, err)
	}
	forwarded(t, k)
}

// forwarded sends a line through a port that kubectl forwards.
func forwarded(t *testing.T, k *harness.Kubectl) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := k.Command(ctx, "port-forward", "pod/p", ":80")
	printed, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(printed).ReadString('\n')
	_, address, ok := strings.Cut(strings.TrimSuffix(line, " -> 80\n"), "Forwarding from ")
	if err != nil || !ok {
		t.Fatalf("port-forward says %q, %v", line, err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintln(conn, "hello")
	if got, err := bufio.NewReader(conn).ReadString('\n'); got != "port 80 got hello\n" {
		t.Errorf("through the port: %q, %v", got, err)
	}
}

// selfSigned writes a key and a certificate of its own.
func selfSigned(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, der := newCertificate(t, name)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func newCertificate(t *testing.T, name string) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	return private, der
}
