// Package flat judges whether a measure that was sampled for a long time still grows.
package flat

import (
	"math"
	"slices"
)

// Point is one sample.
type Point struct {
	At    float64 `json:"at"` // seconds
	Value float64 `json:"value"`
}

// Tolerance bounds the growth of the median of a measure from the first third to the last: Share of the first, and at
// least Least.
type Tolerance struct {
	Share float64 `json:"share"`
	Least float64 `json:"least"`
}

// Verdict is a judgement. Medians has the medians of the thirds of the time that was judged.
type Verdict struct {
	First   float64 `json:"first"`
	Middle  float64 `json:"middle"`
	Last    float64 `json:"last"`
	Allowed float64 `json:"allowed"` // growth from First to Last
	Slope   float64 `json:"slope"`   // per second: the estimate of Theil and Sen
	Low     float64 `json:"low"`     // the ends of its interval of 95 %
	High    float64 `json:"high"`
	Grows   bool    `json:"grows"`
}

// Fewest is the number of points that a judgement needs.
const Fewest = 12

// most bounds the points that are compared with one another; of more, neighbors are merged into their median.
const most = 240

// Judge judges points in the order of time. It returns false if there are too few of them.
//
// A measure grows if the median of the last third exceeds that of the first by more than the tolerance, and the
// growth goes on: the last third is above the middle one, and the slope accounts for at least half of the growth. A measure that has reached its height, one step, a saw's teeth, and outliers are not growth.
func Judge(points []Point, t Tolerance) (v Verdict, judged bool) {
	if len(points) < Fewest {
		return v, false
	}
	points = merge(points)
	n := len(points)
	v.First, v.Middle, v.Last = median(points[:n/3]), median(points[n/3:n-n/3]), median(points[n-n/3:])
	v.Allowed = max(t.Share*math.Abs(v.First), t.Least)
	v.Slope, v.Low, v.High = slope(points)
	between := (points[n-1].At - points[0].At) * 2 / 3 // from the center of the first third to that of the last
	v.Grows = v.Last-v.First > v.Allowed && v.Last-v.Middle > v.Allowed/4 && v.Low > 0 && v.Slope*between > (v.Last-v.First)/2
	return v, true
}

func merge(points []Point) []Point {
	each := (len(points) + most - 1) / most
	if each == 1 {
		return points
	}
	var merged []Point
	for group := range slices.Chunk(points, each) {
		merged = append(merged, Point{group[len(group)/2].At, median(group)})
	}
	return merged
}

func median(points []Point) float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Value
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// slope returns the median of the slopes between all pairs of points, and its interval by Sen's method.
func slope(points []Point) (middle, low, high float64) {
	var slopes []float64
	for i, a := range points {
		for _, b := range points[i+1:] {
			if b.At > a.At {
				slopes = append(slopes, (b.Value-a.Value)/(b.At-a.At))
			}
		}
	}
	if len(slopes) == 0 {
		return 0, 0, 0
	}
	slices.Sort(slopes)
	n, pairs := float64(len(points)), float64(len(slopes))
	reach := 1.96 * math.Sqrt(n*(n-1)*(2*n+5)/18)
	at := func(i float64) float64 { return slopes[min(max(int(math.Round(i)), 0), len(slopes)-1)] }
	return (slopes[(len(slopes)-1)/2] + slopes[len(slopes)/2]) / 2, at((pairs - reach) / 2), at((pairs + reach) / 2)
}
