package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
)

// Config has the address of a live etcd and the credentials.
type Config struct {
	Endpoints []string // "https://10.0.0.1:2379", "10.0.0.1:2379"; the first that answers is used
	CAFile    string   // --etcd-cafile: authorities of the servers' certificates; "": those of the system
	CertFile  string   // --etcd-certfile and --etcd-keyfile: of this client
	KeyFile   string
	User      string // --etcd-user; "": none
	Password  string // content of --etcd-password-file
	Prefix    string // of the keys; "": "/registry/"
}

// maxAnswer bounds the bytes of an answer of etcd.
const maxAnswer = 64 << 20

// endpoints returns the addresses, and whether they are spoken to by TLS.
func (c Config) endpoints() (list []resolver.Address, secure bool, err error) {
	plain := false
	for _, text := range c.Endpoints {
		address := text
		if strings.Contains(text, "://") {
			u, err := url.Parse(text)
			if err != nil || u.User != nil || u.Path != "" && u.Path != "/" {
				return nil, false, errors.New("etcd endpoints: want https://HOST:PORT, without a name or path")
			}
			switch u.Scheme {
			case "https":
				secure = true
			case "http":
				plain = true
			default:
				return nil, false, fmt.Errorf("etcd endpoints: %q is neither https nor http", u.Scheme)
			}
			address = u.Host
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil || host == "" {
			return nil, false, errors.New("etcd endpoints: want HOST:PORT, or https://HOST:PORT")
		}
		list = append(list, resolver.Address{Addr: address, ServerName: host})
	}
	switch files := c.CAFile != "" || c.CertFile != "" || c.KeyFile != ""; {
	case len(list) == 0:
		return nil, false, errors.New("etcd endpoints: none is given")
	case plain && (secure || files):
		return nil, false, errors.New("etcd endpoints: one is http, which has no TLS, and others or --etcd-cafile, --etcd-certfile and --etcd-keyfile want it")
	default:
		return list, secure || files, nil
	}
}

// tls reads the files.
func (c Config) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--etcd-cafile: %s holds no certificate", c.CAFile)
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("--etcd-certfile and --etcd-keyfile are given together")
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-certfile, --etcd-keyfile: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// dial makes a connection that goes to another endpoint where one does not answer.
func dial(c Config) (*grpc.ClientConn, error) {
	addresses, secure, err := c.endpoints()
	if err != nil {
		return nil, err
	}
	if c.User != "" && !secure {
		return nil, errors.New("--etcd-user: a password is sent by TLS alone: give https endpoints, or --etcd-cafile")
	}
	creds := insecure.NewCredentials()
	if secure {
		t, err := c.tls()
		if err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(t)
	}
	r := manual.NewBuilderWithScheme("etcd")
	r.InitialState(resolver.State{Addresses: addresses})
	options := []grpc.DialOption{grpc.WithResolvers(r), grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer), grpc.ForceCodec(codec{})), grpc.WithNoProxy()}
	login := &login{user: c.User, password: c.Password}
	if c.User != "" {
		options = append(options, grpc.WithUnaryInterceptor(login.intercept))
	}
	return grpc.NewClient("etcd:///"+addresses[0].ServerName, options...)
}

// login adds a token to each call, and requests another one when it becomes invalid: etcd forgets tokens
// after minutes, and when the leader changes.
type login struct {
	user, password string

	mu    sync.Mutex
	token string
}

func (l *login) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	for renewed := false; ; renewed = true {
		token, err := l.get(ctx, conn, invoke, renewed)
		if err != nil {
			return err
		}
		err = invoke(metadata.AppendToOutgoingContext(ctx, "token", token), method, req, reply, conn, opts...)
		if renewed || status.Code(err) != codes.Unauthenticated {
			return err
		}
	}
}

func (l *login) get(ctx context.Context, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, renew bool) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token != "" && !renew {
		return l.token, nil
	}
	var answer loginAnswer
	if err := invoke(ctx, authenticate, &loginRequest{name: l.user, password: l.password}, &answer, conn, grpc.ForceCodec(codec{})); err != nil {
		return "", fmt.Errorf("as user %q of --etcd-user: %w", l.user, err)
	}
	l.token = answer.token
	return l.token, nil
}
