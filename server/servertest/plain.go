package servertest

import (
	"slices"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/plugins"
)

// Plain returns an option for tests of the verbs themselves: every request is the admin's, with all permissions,
// no controller does anything, and of admission plugins only those named run, and then those given.
func Plain(names []string, more ...admission.Plugin) func(*server.Config) {
	return func(c *server.Config) {
		Idle(c)
		c.Authenticator = Everybody{User: Admin}
		c.Authorizer = authx.AlwaysAllow{}
		all, _ := plugins.Names(c.Release)
		c.Admission.Enable = names
		c.Admission.Disable = slices.DeleteFunc(all, func(name string) bool { return slices.Contains(names, name) })
		c.Plugins = more
	}
}
