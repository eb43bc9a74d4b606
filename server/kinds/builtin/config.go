package builtin

// Config is what of the built-in resources an operator can set. Its zero value
// is the default.
type Config struct {
	// ServiceCIDR is the range of service addresses; empty is 10.96.0.0/12.
	ServiceCIDR string
	// NodePorts are the first and last port of services that nodes expose; zero
	// is 30000-32767.
	FirstNodePort, LastNodePort int
}
