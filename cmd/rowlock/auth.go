package main

import (
	"crypto/x509"
	"fmt"
	"os"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/authx/tokenfile"
	"github.com/rowlock/rowlock/server/datadir"
)

// authOptions are the flags of authentication and authorization.
type authOptions struct {
	clientCA, tokenFile string
	anonymous           bool
}

// access is what they make.
type access struct {
	authenticator authx.Authenticator
	authorizer    authx.Authorizer
}

func (o *authOptions) build(dir *datadir.Dir) (*access, error) {
	roots := x509.NewCertPool()
	for flag, path := range map[string]string{"--data-dir": dir.CACert, "--client-ca-file": o.clientCA} {
		if path == "" {
			continue
		}
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no PEM certificate in %s", flag, path)
		}
	}
	chain := authx.Chain{clientcert.New(func() *x509.CertPool { return roots })}
	if o.tokenFile != "" {
		tokens, err := tokenfile.Load(o.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-auth-file: %w", err)
		}
		chain = append(chain, authx.Bearer{Tokens: tokens})
	} else {
		chain = append(chain, authx.Bearer{Tokens: authx.TokenChain{}})
	}
	a := &access{authenticator: chain, authorizer: authx.AuthorizerChain{authx.Masters{}}}
	if o.anonymous {
		a.authenticator = authx.AllowAnonymous{Next: chain}
	}
	return a, nil
}
