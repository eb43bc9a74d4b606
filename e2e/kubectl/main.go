// Command kubectl is stock kubectl of the release that rowlock serves, for tests
// on machines that have another one or none. It is a module of its own so that the
// server's module stays clean.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
