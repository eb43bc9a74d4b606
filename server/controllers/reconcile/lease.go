package reconcile

import (
	"net/url"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// LeaseStorage is the storage of Leases.
const LeaseStorage = "leases.coordination.k8s.io"

// LeasesPath returns where the API has the Leases of a namespace.
func LeasesPath(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/leases"
}

// observed is a Lease with the local time of its last change. Clocks of machines are never compared: a Lease with a holder
// is valid until it has not changed for its duration, by the clock of the observer.
type observed struct {
	last string    // distinguishes versions
	at   time.Time // since when; zero: it was not seen
}

// see takes over a version of the Lease.
func (o *observed) see(version string, at time.Time) {
	if o.at.IsZero() || o.last != version {
		o.last, o.at = version, at
	}
}

// left returns how long a Lease of this spec is still valid without a renewal, longest at most; 0 or less: it has no holder, or
// has expired.
func (o *observed) left(spec *coordinationv1.LeaseSpec, longest time.Duration, now time.Time) time.Duration {
	if ptr.Deref(spec.HolderIdentity, "") == "" {
		return 0
	}
	return o.at.Add(min(seconds(spec), longest)).Sub(now)
}

func seconds(spec *coordinationv1.LeaseSpec) time.Duration {
	return time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0)) * time.Second
}

// Expired reports whether a Lease has expired by its own renewTime, for Leases that the caller does not watch. One without
// a renewTime or a duration was not written by a server, and counts as expired.
func Expired(spec *coordinationv1.LeaseSpec, now time.Time) bool {
	return spec.RenewTime == nil || spec.LeaseDurationSeconds == nil || spec.RenewTime.Add(seconds(spec)).Before(now)
}
