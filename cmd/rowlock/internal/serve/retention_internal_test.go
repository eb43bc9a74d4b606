package serve

import (
	"testing"
	"time"
)

// TestRetentionFlag: a value that names some resources leaves the others as they were, and an invalid value changes nothing.
func TestRetentionFlag(t *testing.T) {
	for text, want := range map[string]string{
		"7d": "168h0m0s", "leases=10m": "leases=10m0s,*=5m0s", "leases=10m, *=1.5d": "leases=10m0s,*=36h0m0s", "leases.coordination.k8s.io=1h,leases=2h": "leases=2h0m0s,leases.coordination.k8s.io=1h0m0s,*=5m0s",
		"": "", "0s": "", "-1h": "", "leases": "", "leases=": "", "leases=x": "", "=5m": "", "leases=5m,leases=6m": "", "*=5m,*=6m": "", "Leases=5m": "", "99999d": "", "nand": "", "leases=5m,": "",
	} {
		var r retention
		r.Default = 5 * time.Minute
		if err := r.Set(text); (err != nil) != (want == "") {
			t.Errorf("%q gave %v", text, err)
			want = "5m0s"
		} else if want == "" {
			want = "5m0s"
		}
		if got := r.String(); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
