package metrics_test

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/metrics"
)

// TestCertificateLifetimes: the histogram that alerts about expiring client certificates read counts requests that a
// certificate authenticated, by its remaining lifetime, and no others.
func TestCertificateLifetimes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := metrics.New(kinds.NewCatalogue(nil), func() time.Time { return now })
	request := func(left time.Duration) {
		who := &authx.Authenticated{Identity: &authx.Identity{Name: "jane"}}
		if left != 0 {
			who.CertificateEnds = now.Add(left)
		}
		m.Authenticated(who, true, nil, time.Millisecond)
	}
	request(0) // a token
	request(20 * time.Minute)
	request(6 * 24 * time.Hour)
	request(400 * 24 * time.Hour)
	m.Authenticated(nil, false, nil, time.Millisecond)

	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got *dto.Histogram
	for _, f := range families {
		if f.GetName() == "apiserver_client_certificate_expiration_seconds" {
			got = f.Metric[0].Histogram
		}
	}
	if got == nil {
		t.Fatal("there is no histogram of the lifetimes of client certificates")
	}
	below := map[float64]uint64{}
	for _, b := range got.Bucket {
		below[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	// 30 minutes, 4 days, 7 days, a year.
	for bound, want := range map[float64]uint64{0: 0, 1800: 1, 345600: 1, 604800: 2, 31104000: 2} {
		if n, ok := below[bound]; !ok || n != want {
			t.Errorf("%v s: %d certificates, %v, want %d", bound, n, ok, want)
		}
	}
	if got.GetSampleCount() != 3 {
		t.Errorf("%d requests by certificate, want 3", got.GetSampleCount())
	}
}
