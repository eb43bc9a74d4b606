package heap

import "testing"

// TestStartPercent: as much garbage as lives, 256 MB at most; and where more is expected, that and 256 MB before anything
// is collected. The runtime takes its percentage of 4 MB at least.
func TestStartPercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live, expected uint64
		want           int
	}{
		{0, 0, 100},
		{100 * mb, 0, 100},
		{1024 * mb, 0, 25},
		{16384 * mb, 0, 4},
		{0, 1024 * mb, 31900},
		{10 * mb, 1024 * mb, 12700},
		{1024 * mb, 1024 * mb, 25},
		{2048 * mb, 1024 * mb, 12},
	} {
		if got := startPercent(c.live, c.expected); got != c.want {
			t.Errorf("%d live, %d expected: %d, want %d", c.live, c.expected, got, c.want)
		}
	}
}
