// Package embed runs a control plane inside a program: a Kubernetes API with the program's own kinds, store,
// users and rules.
//
//	cp, err := embed.New(ctx, embed.Options{})
//	go cp.Run(ctx)
//	err = cp.Ready(ctx)
//	client, err := kubernetes.NewForConfig(cp.Config())
//
// Stability, from version 0.1 on and for each version with the same major number (the same minor one below
// 1.0): the exported API of this package stays as it is, except for Options.Configure and
// Options.ConfigureStore, which expose the inside of the server; so do the interfaces of package authx that
// it uses (Authenticator, TokenAuthenticator, Authorizer, and their parameters and results) and
// sqlstore.Driver. New fields may be added to structs, so literals name theirs. All other packages of this
// module may change at any time.
//
// A program that imports this package imports of k8s.io/client-go what rest.Config needs, and no database:
// drivers come with sqlstore/sqlite and sqlstore/postgres.
package embed

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/direct"
	"github.com/rowlock/rowlock/sqlstore"
)

// ControlPlane is a control plane of this process.
type ControlPlane struct {
	// Server and Store are its parts, for experts; neither is stable.
	Server *server.Server
	Store  *sqlstore.Store

	options Options
	driver  sqlstore.Driver
	direct  *direct.Transport
	ready   chan struct{} // closed when everything is served
	ended   chan struct{} // closed when Run, or Close without it, has returned
	begun   atomic.Bool   // Run or Close was called
	err     error         // of Run
}

// ErrEnded: a control plane does not run any more, was closed before it ran, or is run a
// second time.
var ErrEnded = errors.New("embed: the control plane has ended")

// New makes a control plane for Run. If Run is not called, Close must be.
func New(ctx context.Context, o Options) (*ControlPlane, error) {
	c := &ControlPlane{options: o, ready: make(chan struct{}), ended: make(chan struct{})}
	open := o.Store
	if open == nil {
		open = inMemory
	}
	var err error
	if c.driver, err = open(ctx); err != nil {
		return nil, err
	}
	if err := c.build(); err != nil {
		return nil, errors.Join(err, c.driver.Close())
	}
	c.direct = direct.New(c.Server.Handler())
	return c, nil
}

// Run serves until ctx ends, lets requests in flight finish, and closes the store. It is
// called once.
func (c *ControlPlane) Run(ctx context.Context) error {
	if !c.begun.CompareAndSwap(false, true) {
		return ErrEnded
	}
	c.err = c.run(ctx)
	close(c.ended)
	return c.err
}

func (c *ControlPlane) run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- c.Server.Run(running) }()
	err := c.prepare(running)
	if err == nil {
		close(c.ready)
	} else {
		stop()
	}
	if ctx.Err() != nil {
		err = nil // it was stopped before it was ready
	}
	err = errors.Join(err, <-served)
	c.direct.Close()
	return errors.Join(err, c.driver.Close())
}

// prepare waits until the server serves, and then until it serves the program's own kinds.
func (c *ControlPlane) prepare(ctx context.Context) error {
	select {
	case <-c.Server.Started():
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.define(ctx)
}

// Ready waits until everything is served.
func (c *ControlPlane) Ready(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-c.ended:
		return errors.Join(ErrEnded, c.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close releases the resources of a control plane whose Run was not called; otherwise it does nothing,
// because the end of Run's context releases them.
func (c *ControlPlane) Close() error {
	if !c.begun.CompareAndSwap(false, true) {
		return nil
	}
	defer close(c.ended)
	var err error
	if l := c.options.Listener; l != nil {
		err = l.Close()
	}
	c.direct.Close()
	return errors.Join(err, c.driver.Close())
}

// Handler serves the API on the program's own listener. It takes client certificates from the TLS state of
// requests, and recognizes the users of Config and As. With HTTP/2 on such a listener, watches of many
// clients cost more than with Options.Listener.
func (c *ControlPlane) Handler() http.Handler { return c.Server.Handler() }

// Config is for clients in this process, which may do everything. It uses no network.
func (c *ControlPlane) Config() *rest.Config { return c.As("system:admin", authx.GroupMasters) }

// As returns the configuration of clients in this process that act as a user, with the rights of the user and of the
// groups.
func (c *ControlPlane) As(user string, groups ...string) *rest.Config {
	return &rest.Config{
		Host: "http://" + localHost, Transport: c.direct.As(&authx.Identity{Name: user, Groups: groups}), QPS: -1,
	}
}

// localHost is the host name of the API without a network.
const localHost = "in-process.rowlock"
