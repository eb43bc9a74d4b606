package meter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Environment returns the environment of the library for expressions that must also work on the release
// compatible, with the costs of a strict count. Newer releases of the library have no other count, and no
// parameter for it: this calls whichever the program was built with.
func Environment(compatible *version.Version) *environment.EnvSet {
	switch base := any(environment.MustBaseEnvSet).(type) {
	case func(*version.Version, bool) *environment.EnvSet:
		return base(compatible, true)
	case func(*version.Version) *environment.EnvSet:
		return base(compatible)
	default:
		panic(fmt.Sprintf("k8s.io/apiserver/pkg/cel/environment: MustBaseEnvSet is a %T", base))
	}
}
