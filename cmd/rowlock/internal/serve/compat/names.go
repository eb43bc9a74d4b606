package compat

import (
	"github.com/spf13/pflag"
)

// OtherNames lets flags be called as kube-apiserver calls them where this server
// has another name for the same.
func OtherNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "logging-format" {
		name = "log-format"
	}
	return pflag.NormalizedName(name)
}
