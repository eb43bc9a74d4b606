// Package window runs a server on this machine that shows a cluster as of one revision: it forwards reads to the
// cluster's server and refuses everything else.
//
// The server listens on 127.0.0.1 with TLS, and requires a token that only its starter has: it forwards requests
// with that user's credentials, which no other user of the machine may borrow. Close waits for the goroutine that
// Open started.
package window

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
)

// Window is a server that runs until Close.
type Window struct {
	// Kubeconfig is a file that only the user can read, for programs that should see the past.
	Kubeconfig string
	// Folder holds it, and is removed by Close; programs may keep caches there.
	Folder string

	token  [sha256.Size]byte
	server *http.Server
	served chan error
}

// Config configures a Window.
type Config struct {
	Client   *cluster.Client
	Revision int64
	Moment   string // the moment, for messages: "14:05:00 today"
}

// Open starts the server.
func Open(config Config) (*Window, error) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	token := base64.RawURLEncoding.EncodeToString(secret)
	certificate, authority, err := certificate()
	if err != nil {
		return nil, fmt.Errorf("a certificate for the view of the past: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("an address for the view of the past: %w", err)
	}
	w := &Window{token: sha256.Sum256([]byte("Bearer " + token)), served: make(chan error, 1)}
	if err := w.write("https://"+listener.Addr().String(), token, authority, config.Client.Namespace); err != nil {
		_ = listener.Close() // nothing was served
		return nil, err
	}
	w.server = &http.Server{
		Handler:           w.guard(newProxy(config)),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // failed handshakes of other programs are not logged
	}
	go func() { w.served <- w.server.ServeTLS(listener, "", "") }()
	return w, nil
}

// Close ends the requests that are being served, stops the server and removes its files.
func (w *Window) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if w.server.Shutdown(ctx) != nil {
		_ = w.server.Close() // requests may be in flight: close anyway
	}
	<-w.served
	return os.RemoveAll(w.Folder)
}

// guard refuses requests without the token.
func (w *Window) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], w.token[:]) != 1 {
			refuse(out, http.StatusUnauthorized, "Unauthorized", "this view belongs to another user")
			return
		}
		r.Header.Del("Authorization")
		next.ServeHTTP(out, r)
	})
}

// write writes the kubeconfig to a folder that only the user can enter.
func (w *Window) write(address, token string, authority []byte, namespace string) error {
	folder, err := os.MkdirTemp("", "rowlock-at-")
	if err != nil {
		return fmt.Errorf("a folder for the view of the past: %w", err)
	}
	const name = "past"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: address, CertificateAuthorityData: authority}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	c.CurrentContext = name
	data, err := clientcmd.Write(*c)
	if err == nil {
		w.Folder, w.Kubeconfig = folder, filepath.Join(folder, "kubeconfig")
		err = os.WriteFile(w.Kubeconfig, data, 0o600)
	}
	if err != nil {
		_ = os.RemoveAll(folder) // the caller gets the error
		return fmt.Errorf("the kubeconfig of the view of the past: %w", err)
	}
	return nil
}

// certificate makes a self-signed certificate for 127.0.0.1 that is kept in memory.
func certificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "rowlock at"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Environment returns the environment for a program that should see the past: it names the kubeconfig, and a cache
// folder of its own, because kubectl's cache of the live server would be wrong.
func (w *Window) Environment(environ []string, moment string) []string {
	var kept []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "KUBECONFIG", "KUBECACHEDIR", "ROWLOCK_AT", "HTTPS_PROXY", "https_proxy": // proxies are for the way from here
		default:
			kept = append(kept, e)
		}
	}
	return append(kept, "KUBECONFIG="+w.Kubeconfig, "KUBECACHEDIR="+filepath.Join(w.Folder, "cache"), "ROWLOCK_AT="+moment)
}
