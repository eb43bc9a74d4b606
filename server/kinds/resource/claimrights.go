package resource

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	granularRightsGate = "DRAResourceClaimGranularStatusAuthorization"

	// maxDrivers is the number of drivers of a change whose rights are checked. There are at most as many devices in
	// the allocations before and after it; validation refuses others.
	maxDrivers = 2 * resourceapi.AllocationResultsMaxSize

	nodeField = "metadata.name"
)

// claimRights returns the rights that a change of the status of a claim needs: to bind a claim, and to report for each driver
// whose devices change. Nil without the gate.
func claimRights(on kinds.Feature) func(c, old *resourceapi.ResourceClaim, verb, node string) []kinds.Right {
	if !on(granularRightsGate) {
		return nil
	}
	deviceStatus := on("DRAResourceClaimDeviceStatus")
	return func(c, old *resourceapi.ResourceClaim, verb, node string) (out []kinds.Right) {
		s, was := &c.Status, &old.Status
		if !rules.Same(s.Allocation, was.Allocation) || !rules.Same(s.ReservedFor, was.ReservedFor) {
			out = append(out, kinds.Right{
				Field: statusPath.Child("allocation"), Subresource: "binding", Verbs: []string{verb},
				Detail: detail(`changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="%s" permission`, verb),
			})
		}
		if !deviceStatus || s.Allocation == nil {
			return out
		}
		verbs := []string{"arbitrary-node:" + verb}
		if node != "" && node == nodeOf(s.Allocation) {
			verbs = []string{"associated-node:" + verb, verbs[0]}
		}
		for _, driver := range changedDrivers(s, was) {
			out = append(out, kinds.Right{
				Field: statusPath.Child("devices"), Subresource: "driver", Namespace: c.Namespace, Names: []string{driver}, Verbs: verbs,
				Detail: detail(`changing status.devices requires resource="resourceclaims/driver", verb="[%s]" permission`, strings.Join(verbs, " ")),
			})
		}
		return out
	}
}

// detail returns the detail of an error that does not name the user.
func detail(format, verbs string) func(string) string {
	return func(string) string { return fmt.Sprintf(format, verbs) }
}

// changedDrivers returns the drivers whose devices differ, sorted.
func changedDrivers(s, was *resourceapi.ResourceClaimStatus) []string {
	left := make(map[device]*resourceapi.AllocatedDeviceStatus, len(was.Devices))
	for i := range was.Devices {
		left[statusOf(&was.Devices[i])] = &was.Devices[i]
	}
	changed := map[string]bool{}
	for i := range s.Devices {
		d := &s.Devices[i]
		before := left[statusOf(d)]
		delete(left, statusOf(d))
		if before == nil || !rules.Same(*before, *d) {
			changed[d.Driver] = true
		}
	}
	for _, d := range left {
		changed[d.Driver] = true
	}
	drivers := slices.Sorted(maps.Keys(changed))
	return drivers[:min(len(drivers), maxDrivers)]
}

// nodeOf returns the node that an allocation is for; "" if it is not for exactly one.
func nodeOf(a *resourceapi.AllocationResult) string {
	if a.NodeSelector == nil || len(a.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := &a.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) > 0 || len(term.MatchFields) != 1 {
		return ""
	}
	f := &term.MatchFields[0]
	if f.Key != nodeField || f.Operator != "In" || len(f.Values) != 1 || len(apivalidation.NameIsDNSSubdomain(f.Values[0], false)) > 0 {
		return ""
	}
	return f.Values[0]
}
