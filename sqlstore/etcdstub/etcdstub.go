// Package etcdstub replaces the etcd of a kube-apiserver: its process owns the folder of a database and gives API
// servers on its machine the path of the folder. The servers open the file themselves, several at a time; their
// data does not pass through this process.
//
// A folder has one process at a time, and survives it unless it is temporary. A folder of an etcd is refused. A
// request from the network, or with another host name than this process has, gets only its health and version.
// API servers accept only a folder of their own user. The process stops at once, without waiting for connections.
//
// It uses the standard library alone, so that the program cmd/etcd stays small.
//
// Goroutines: one for each listener, which Close ends; those of net/http for each connection, at most maxConns,
// which Close ends too.
package etcdstub

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The release of etcd whose command line and answers these are.
const (
	etcdRelease = "3.5.21"
	etcdCluster = "3.5.0"
)

const (
	// placePath is the path of API servers' requests for the database.
	placePath = "/rowlock/place"
	// Files of the folder.
	databaseName, keysName, placeName, lockName = "rowlock.db", "keys", "rowlock.place", "rowlock.etcd.lock"
	// maxConns bounds the open connections of all listeners.
	maxConns = 256
)

// Place locates the shared files for API servers.
type Place struct {
	Database string `json:"database"` // the SQLite file
	Keys     string `json:"keys"`     // a folder for certificates and keys of the cluster
	Unsynced bool   `json:"unsynced"` // nothing needs to survive a crash of the machine
	Seal     string `json:"seal"`     // content of the file next to the database while this process owns it
}

// Config configures a Server.
type Config struct {
	Dir      string   // the folder; "": a temporary one, removed by Close
	Clients  []string // URLs to listen on, http or https
	Names    []string // more URLs, by whose hosts clients may call this process
	Metrics  []string // more of them, on which nothing but health and versions is answered
	TLS      TLS      // of https
	Unsynced bool
	Log      io.Writer // lines for people
}

// Server is the process. New opens everything, Run serves, Close ends it.
type Server struct {
	cfg       Config
	place     Place
	temporary string
	unlock    func()
	https     []*http.Server
	listeners []net.Listener
	failed    chan error
	loops     sync.WaitGroup
	once      sync.Once
}

// New takes the folder and listens.
func New(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, failed: make(chan error, len(cfg.Clients)+len(cfg.Metrics))}
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) open() error {
	dir := s.cfg.Dir
	if dir == "" {
		made, err := os.MkdirTemp("", "rowlock-etcd-")
		if err != nil {
			return fmt.Errorf("a folder for the data: %w", err)
		}
		dir, s.temporary = made, made
	}
	if err := s.take(dir); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	places := make(chan struct{}, maxConns)
	for _, l := range []struct {
		flag    string
		urls    []string
		handler http.Handler
	}{{"--listen-client-urls", s.cfg.Clients, s.handler(true)}, {"--listen-metrics-urls", s.cfg.Metrics, s.handler(false)}} {
		for _, at := range l.urls {
			listener, err := listen(at, s.cfg.TLS)
			if err != nil {
				return fmt.Errorf("%s %s: %w", l.flag, at, err)
			}
			s.listeners = append(s.listeners, limited{listener, places})
			s.https = append(s.https, &http.Server{
				Handler: l.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
				IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0),
			})
		}
	}
	return nil
}

// take makes the folder this process's own.
func (s *Server) take(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(abs, "member")); err == nil && info.IsDir() {
		return fmt.Errorf("%s holds the data of an etcd, which only an etcd can read: name another folder", abs)
	}
	if s.unlock, err = alone(filepath.Join(abs, lockName)); err != nil {
		return fmt.Errorf("%s: %w", abs, err)
	}
	var seal [16]byte
	rand.Read(seal[:])
	s.place = Place{
		Database: filepath.Join(abs, databaseName), Keys: filepath.Join(abs, keysName),
		Unsynced: s.cfg.Unsynced, Seal: hex.EncodeToString(seal[:]),
	}
	return writeSeal(filepath.Join(abs, placeName), s.place.Seal)
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	for i, hs := range s.https {
		s.loops.Go(func() {
			if err := hs.Serve(s.listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				s.failed <- err
			}
		})
		fmt.Fprintf(s.cfg.Log, "etcd for rowlock's API servers: listening on %s, data in %s\n", s.listeners[i].Addr(), filepath.Dir(s.place.Database))
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return fmt.Errorf("serving: %w", err)
	}
}

// Close ends everything at once.
func (s *Server) Close() {
	s.once.Do(func() {
		for _, l := range s.listeners {
			_ = l.Close() // before hs.Close, which only knows those that are served
		}
		for _, hs := range s.https {
			_ = hs.Close() // connected clients see the end
		}
		s.loops.Wait()
		if s.place.Seal != "" {
			_ = os.Remove(filepath.Join(filepath.Dir(s.place.Database), placeName)) // the folder may be gone already
		}
		if s.unlock != nil {
			s.unlock()
		}
		if s.temporary != "" {
			_ = os.RemoveAll(s.temporary) // in the folder of temporary files, which is emptied now and then
		}
	})
}

// handler answers etcd's requests over plain HTTP; whole adds the place.
func (s *Server) handler(whole bool) http.Handler {
	mux := http.NewServeMux()
	answer := func(path string, value any) {
		text, _ := json.Marshal(value) // strings always can be
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(text) // an error means that the client has disconnected
		})
	}
	answer("/health", map[string]string{"health": "true", "reason": ""})
	answer("/version", map[string]string{"etcdserver": etcdRelease, "etcdcluster": etcdCluster})
	for _, path := range []string{"/livez", "/readyz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok\n")
		})
	}
	if whole {
		text, _ := json.Marshal(s.place)
		mux.HandleFunc("GET "+placePath, func(w http.ResponseWriter, r *http.Request) {
			if !local(r) || !s.called(r.Host) {
				http.Error(w, "only processes of the same machine are answered, which use its address or name, or one of --advertise-client-urls", http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(text)
		})
	}
	return mux
}

// called reports whether host is a name of this process. This stops DNS rebinding: the requests of a web page whose
// name resolves to an address of this machine have the name of the page.
func (s *Server) called(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil {
		return true
	}
	if own, err := os.Hostname(); err == nil && strings.EqualFold(host, own) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(s.cfg.Clients, s.cfg.Names), func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && strings.EqualFold(host, u.Hostname())
	})
}

// local reports whether a request comes from this machine: from a loopback address, or from the address
// that received it.
func local(r *http.Request) bool {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(from)
	if ip == nil || ip.IsLoopback() {
		return ip != nil
	}
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil {
		return false
	}
	to, _, err := net.SplitHostPort(at.String())
	return err == nil && ip.Equal(net.ParseIP(to))
}
