package compat

import (
	"github.com/spf13/pflag"
)

// OtherNames accepts kube-apiserver's names of flags that have another name here.
func OtherNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "logging-format" {
		name = "log-format"
	}
	return pflag.NormalizedName(name)
}
