// Package gates knows the feature gates of the release, their stages and defaults,
// and which are on.
//
// It promises: an unknown gate, or one that is locked, is refused with the words
// of a stock server.
package gates

import "fmt"

// Stage is how mature a feature is.
type Stage string

// The stages. A GA gate is locked: its feature can no longer be switched off.
const (
	Alpha      Stage = "ALPHA"
	Beta       Stage = "BETA"
	GA         Stage = "GA"
	Deprecated Stage = "DEPRECATED"
)

// Gate is one feature gate.
type Gate struct {
	Name    string
	Stage   Stage
	Default bool
	Locked  bool   // to Default
	Needs   string // another gate that must be on
}

// known are the gates that change what this server does, and those that operators
// of this release may still name.
var known = []Gate{
	{Name: "APIListChunking", Stage: GA, Default: true, Locked: true},
	{Name: "APIResponseCompression", Stage: Beta, Default: true},
	{Name: "APIServerIdentity", Stage: Beta, Default: true},
	{Name: "AdmissionWebhookMatchConditions", Stage: GA, Default: true, Locked: true},
	{Name: "AggregatedDiscoveryEndpoint", Stage: GA, Default: true, Locked: true},
	{Name: "AllowInsecureKubeletCertificateSigningRequests", Stage: Deprecated},
	{Name: "AllowUnsafeMalformedObjectDeletion", Stage: Alpha},
	{Name: "AnonymousAuthConfigurableEndpoints", Stage: Beta, Default: true},
	{Name: "AuthorizeNodeWithSelectors", Stage: Beta, Default: true, Needs: "AuthorizeWithSelectors"},
	{Name: "AuthorizeWithSelectors", Stage: Beta, Default: true},
	{Name: "CBORServingAndStorage", Stage: Alpha},
	{Name: "CRDValidationRatcheting", Stage: Beta, Default: true},
	{Name: "ConsistentListFromCache", Stage: Beta, Default: true},
	{Name: "CustomResourceFieldSelectors", Stage: GA, Default: true, Locked: true},
	{Name: "InPlacePodVerticalScaling", Stage: Alpha},
	{Name: "MutatingAdmissionPolicy", Stage: Alpha},
	{Name: "OpenAPIEnums", Stage: Beta, Default: true},
	{Name: "RecoverVolumeExpansionFailure", Stage: Beta, Default: true},
	{Name: "RemainingItemCount", Stage: GA, Default: true, Locked: true},
	{Name: "ResilientWatchCacheInitialization", Stage: Beta, Default: true},
	{Name: "RetryGenerateName", Stage: GA, Default: true, Locked: true},
	{Name: "ServerSideApply", Stage: GA, Default: true, Locked: true},
	{Name: "ServiceAccountNodeAudienceRestriction", Stage: Beta},
	{Name: "ServiceAccountTokenJTI", Stage: GA, Default: true, Locked: true},
	{Name: "ServiceAccountTokenNodeBinding", Stage: Beta, Default: true},
	{Name: "ServiceAccountTokenNodeBindingValidation", Stage: GA, Default: true, Locked: true},
	{Name: "ServiceAccountTokenPodNodeInfo", Stage: GA, Default: true, Locked: true},
	{Name: "StructuredAuthenticationConfiguration", Stage: Beta, Default: true},
	{Name: "StructuredAuthorizationConfiguration", Stage: GA, Default: true, Locked: true},
	{Name: "ValidatingAdmissionPolicy", Stage: GA, Default: true, Locked: true},
	{Name: "WatchBookmark", Stage: GA, Default: true, Locked: true},
	{Name: "WatchList", Stage: Beta, Default: true},
}

// Gates are the gates of one server.
type Gates struct {
	gates map[string]Gate
	on    map[string]bool
}

// New are all gates at their defaults.
func New() *Gates {
	g := &Gates{gates: make(map[string]Gate, len(known)), on: make(map[string]bool, len(known))}
	for _, k := range known {
		g.gates[k.Name] = k
		g.on[k.Name] = k.Default
	}
	return g
}

// Set switches a gate. AllAlpha and AllBeta switch all of a stage.
func (g *Gates) Set(name string, on bool) error {
	switch name {
	case "AllAlpha":
		g.setStage(Alpha, on)
		return nil
	case "AllBeta":
		g.setStage(Beta, on)
		return nil
	}
	k, ok := g.gates[name]
	if !ok {
		return fmt.Errorf("unrecognized feature gate: %s", name)
	}
	if k.Locked && on != k.Default {
		return fmt.Errorf("cannot set feature gate %s to %t, feature is locked to %t", name, on, k.Default)
	}
	g.on[name] = on
	return nil
}

func (g *Gates) setStage(stage Stage, on bool) {
	for name, k := range g.gates {
		if k.Stage == stage {
			g.on[name] = on
		}
	}
}

// Check says whether every gate that is on has what it needs.
func (g *Gates) Check() error {
	for _, k := range known {
		if k.Needs != "" && g.on[k.Name] && !g.on[k.Needs] {
			return fmt.Errorf("%s feature requires %s feature to be enabled", k.Name, k.Needs)
		}
	}
	return nil
}

// Enabled says whether a gate is on; unknown ones are not.
func (g *Gates) Enabled(name string) bool { return g.on[name] }

// All lists every gate and whether it is on, for metrics.
func (g *Gates) All(fn func(Gate, bool)) {
	for _, k := range known {
		fn(k, g.on[k.Name])
	}
}
