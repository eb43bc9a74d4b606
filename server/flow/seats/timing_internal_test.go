package seats

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTimings: of each nanosecond is known what of the seats and places was used.
func TestTimings(t *testing.T) {
	bubble(t, 10, Limits{Most: [2]int{20, 10}}, func(t *testing.T, s *Scheduler) {
		l, counts := s.one(2, 1, 5), &Flow{}
		first := &Request{Level: l, Flow: counts, Seats: 5}
		if err := s.Enter(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		second := &Request{Level: l, Flow: counts, Seats: 10, Patience: time.Minute}
		ended := make(chan error)
		go func() { ended <- s.Enter(t.Context(), second) }()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := s.Counts([]*Flow{counts})[0].Unplaced; n == 0 {
			t.Error("there was room for all")
		}
		s.Leave(first)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.Leave(second)
		states, _ := s.States(OfLevels)
		of, kinds := states[0].Timings, s.Kinds()
		for _, tc := range []struct {
			name string
			got  Timing
			want map[float64]time.Duration // by bound
			sum  float64                   // over seconds
		}{
			{"seats", of.Seats, map[float64]time.Duration{0.5: 2 * time.Second, 1: time.Second}, 2},
			{"running", of.Running, map[float64]time.Duration{0.1: 3 * time.Second}, 0.3},
			{"waiting", of.Waiting, map[float64]time.Duration{0: 2 * time.Second, 0.1: time.Second}, 0.1},
			{"wanted", of.Wanted, map[float64]time.Duration{0.6: time.Second, 1: time.Second, 1.7: time.Second}, 3},
			{"reading that run", kinds.Running[Reading], map[float64]time.Duration{0.1: 3 * time.Second}, 0.15},
			{"reading that wait", kinds.Waiting[Reading], map[float64]time.Duration{0: 2 * time.Second, 0.1: time.Second}, 0.05},
			{"writing that run", kinds.Running[Writing], map[float64]time.Duration{0: 3 * time.Second}, 0},
		} {
			for i, spent := range tc.got.Spent {
				bound := -1.0 // beyond them all
				if i < len(tc.got.Bounds) {
					bound = tc.got.Bounds[i]
				}
				if spent != tc.want[bound] {
					t.Errorf("%s: %v at %v, want %v", tc.name, spent, bound, tc.want[bound])
				}
			}
			if off := tc.got.Sum/1e9 - tc.sum; off > 1e-6 || off < -1e-6 {
				t.Errorf("%s: %v in all, want %v", tc.name, tc.got.Sum/1e9, tc.sum)
			}
		}
	})
}
