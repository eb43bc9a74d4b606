package flat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rowlock/rowlock/e2e/robustness/years/flat"
)

func TestJudge(t *testing.T) {
	const mb = 1 << 20
	tolerance := flat.Tolerance{Share: 0.1, Least: 5 * mb}
	for name, c := range map[string]struct {
		value func(share, noise float64) float64 // at a share of the time; noise is normal
		grows bool
	}{
		"constant":            {func(float64, float64) float64 { return 7 }, false},
		"nothing":             {func(float64, float64) float64 { return 0 }, false},
		"noise":               {func(_, noise float64) float64 { return 100*mb + 15*mb*noise }, false},
		"falls":               {func(at, noise float64) float64 { return 200*mb - 100*mb*at + 5*mb*noise }, false},
		"within tolerance":    {func(at, noise float64) float64 { return 100*mb + 8*mb*at + mb*noise }, false},
		"leak":                {func(at, noise float64) float64 { return 100*mb + 30*mb*at + mb*noise }, true},
		"leak in noise":       {func(at, noise float64) float64 { return 100*mb + 40*mb*at + 10*mb*noise }, true},
		"leak below teeth":    {func(at, noise float64) float64 { return 80*mb + 60*mb*at + 80*mb*math.Mod(at*23, 1) + mb*noise }, true},
		"teeth":               {func(at, _ float64) float64 { return 80*mb + 80*mb*math.Mod(at*23, 1) }, false},
		"few teeth":           {func(at, _ float64) float64 { return 4 * mb * math.Mod(at*4.5, 1) }, false},
		"reaches its height":  {func(at, noise float64) float64 { return 100*mb + 60*mb*(1-math.Exp(-at*12)) + mb*noise }, false},
		"grows by its root":   {func(at, noise float64) float64 { return 50*mb + 100*mb*math.Sqrt(at) + mb*noise }, true},
		"a step early":        {func(at, noise float64) float64 { return 100*mb + step(at > 0.2)*50*mb + mb*noise }, false},
		"a step late":         {func(at, noise float64) float64 { return 100*mb + step(at > 0.7)*50*mb + mb*noise }, false},
		"stairs":              {func(at, noise float64) float64 { return 100*mb + math.Floor(at*8)*6*mb + mb*noise }, true},
		"outliers at the end": {func(at, noise float64) float64 { return 100*mb + step(at > 0.9)*900*mb + mb*noise }, false},
		"from nothing":        {func(at, _ float64) float64 { return 40 * mb * at }, true},
	} {
		for _, n := range []int{flat.Fewest, 40, 300, 2000} {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			points := make([]flat.Point, n)
			for i := range points {
				at := float64(i) / float64(n-1)
				points[i] = flat.Point{At: 60 + 600*at, Value: c.value(at, random.NormFloat64())}
			}
			v, judged := flat.Judge(points, tolerance)
			few := n < 40 && (name == "teeth" || name == "leak in noise" || name == "leak below teeth" || name == "stairs") // so few points do not show it
			if !judged || v.Grows != c.grows && !few {
				t.Errorf("%s, %d points: judged %v, %+v", name, n, judged, v)
			}
			if v.Low > v.Slope || v.Slope > v.High {
				t.Errorf("%s, %d points: the interval of the slope is not around it: %+v", name, n, v)
			}
		}
	}
}

func step(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// TestSlope: the slope is that of the line below the noise, whatever the unit of time.
func TestSlope(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	for _, unit := range []float64{1, 1000} {
		var points []flat.Point
		for i := range 200 {
			points = append(points, flat.Point{At: unit * float64(i), Value: 1000 + 3*float64(i) + 20*random.NormFloat64()})
		}
		points[100].Value = 1e9
		if v, _ := flat.Judge(points, flat.Tolerance{Share: 0.1}); v.Low*unit > 3 || v.High*unit < 3 || v.High*unit-v.Low*unit > 0.3 || !v.Grows {
			t.Errorf("the slope is %+v", v)
		}
	}
}

func TestTooFew(t *testing.T) {
	if _, judged := flat.Judge(make([]flat.Point, flat.Fewest-1), flat.Tolerance{}); judged {
		t.Error("too few points were judged")
	}
	if v, judged := flat.Judge(make([]flat.Point, flat.Fewest), flat.Tolerance{}); !judged || v.Grows { // all at one time
		t.Errorf("%v, %+v", judged, v)
	}
}
