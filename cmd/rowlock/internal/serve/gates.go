package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"
	genericfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/usage"
	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/server/release"
)

// gatesFlag is the name of the flag that switches feature gates.
const gatesFlag = "feature-gates"

// GatesTopic returns a help page without a command.
func GatesTopic() *cobra.Command {
	topic := &cobra.Command{
		Use:   "gates",
		Short: "The feature gates that --" + gatesFlag + " of serve takes",
	}
	topic.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		fmt.Fprintf(cmd.OutOrStdout(), "Feature gates are switched with --%s=GATE=true|false[,...] of rowlock serve. They are:\n\n  %s\n",
			gatesFlag, strings.Join(gates.Help(release.Default), "\n  "))
	})
	return topic
}

// gatesError adds the flag, and the gate that was probably meant, to an error.
func gatesError(v release.Version, pairs []string, err error) error {
	known := map[string]bool{}
	gates.New(v).All(func(gate gates.Gate, _ bool) { known[gate.Name] = true })
	names := slices.Sorted(maps.Keys(known))
	for _, pair := range pairs {
		if name := gates.Name(pair); !known[name] {
			return fmt.Errorf("--%s: %w%s; \"rowlock help gates\" lists the gates", gatesFlag, err, usage.DidYouMean(name, names))
		}
	}
	return fmt.Errorf("--%s: %w; want GATE=true or GATE=false", gatesFlag, err)
}

// enablementError returns the error of --runtime-config; nil if err is nil.
func enablementError(all []*kinds.Resource, pairs []string, err error) error {
	if err == nil {
		return nil
	}
	known := map[string]bool{"api/all": true, "api/ga": true, "api/beta": true, "api/alpha": true}
	for _, r := range all {
		known[r.GVR().GroupVersion().String()] = true
	}
	names := slices.Sorted(maps.Keys(known))
	hint := ""
	for key := range kinds.ParseRuntimeConfig(pairs) {
		if !known[key] {
			hint = usage.DidYouMean(key, names)
		}
	}
	return fmt.Errorf("--runtime-config: %w%s; want KEY=true or KEY=false, with KEY one of api/all, api/ga, api/beta, api/alpha, GROUP/VERSION and GROUP/VERSION/RESOURCE", err, hint)
}

// setLibraryGates turns gates off in the expression libraries, which read their own gates when the first
// expression is compiled. The libraries may be of a release that has locked a gate that v lets one switch.
func setLibraryGates(v release.Version, g *gates.Gates) error {
	if g.Enabled("AuthorizeWithSelectors") {
		return nil
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(version.MajorMinor(uint(v.Major()), uint(v.Minor()))); err != nil {
		return fmt.Errorf("letting the expression libraries behave as release %s: %w", v, err)
	}
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(genericfeatures.AuthorizeWithSelectors): false,
	})
}

// gatesCollector reports the gates as metrics.
func gatesCollector(g *gates.Gates) prometheus.Collector {
	return metrics.Features(func(show func(name, stage string, on bool)) {
		g.All(func(gate gates.Gate, on bool) { show(gate.Name, string(gate.Stage), on) })
	})
}
