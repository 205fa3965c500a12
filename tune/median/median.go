// Package median is the middle of samples.
package median

import "slices"

// Of is the median of numbers in any order, the mean of both middle ones of an even count;
// 0 of none.
func Of(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
