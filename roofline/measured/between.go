package measured

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// free are the sizes that a time may lie between: of a GEMM all, of attention
// the batch and the tokens.
func (s *Sample) free() ([3]int, [3]string) {
	if s.Op == GEMM {
		return [3]int{s.M, s.N, s.K}, [3]string{"m", "n", "k"}
	}
	return [3]int{s.Batch, s.NewTokens, s.PastTokens}, [3]string{"batch", "new", "past"}
}

// like says whether two problems agree in all that is not free.
func (s *Sample) like(t *Sample) bool {
	a, b := *s, *t
	a.M, a.N, a.K, a.Batch, a.NewTokens, a.PastTokens = 0, 0, 0, 0, 0, 0
	b.M, b.N, b.K, b.Batch, b.NewTokens, b.PastTokens = 0, 0, 0, 0, 0, 0
	a.Framework, a.Version, a.US, b.Framework, b.Version, b.US = "", "", 0, "", "", 0
	return a == b
}

// between returns the time of a problem that the table lacks, from the nearest
// ones around it: the rate of useful operations is taken to follow a power of
// each size from one neighbour to the next. It returns 0 where a neighbour is
// missing: nothing is extrapolated.
func (t table) between(want *Sample) (us float64, around string, err error) {
	rates := map[[3]int]float64{}
	var grid [3][]int
	s := Sample{Op: t.op}
	err = t.lines(func(line []byte) error {
		if err := s.parse(line); err != nil {
			return err
		}
		if !s.sensible() || !s.like(want) {
			return nil
		}
		sizes, _ := s.free()
		rates[sizes] = s.FLOPs() / s.US
		for d, n := range sizes {
			grid[d] = append(grid[d], n)
		}
		return nil
	})
	if err != nil || len(rates) == 0 {
		return 0, "", err
	}
	sizes, names := want.free()
	var low, high [3]int
	var weight [3]float64 // of high
	var parts []string
	for d, n := range sizes {
		slices.Sort(grid[d])
		i, exact := slices.BinarySearch(grid[d], n)
		switch {
		case exact:
			low[d], high[d] = n, n
			continue
		case i == 0 || i == len(grid[d]):
			return 0, "", nil
		}
		low[d], high[d] = grid[d][i-1], grid[d][i]
		// No past tokens are one like the others.
		at := func(v int) float64 { return math.Log(float64(v) + 1) }
		weight[d] = (at(n) - at(low[d])) / (at(high[d]) - at(low[d]))
		parts = append(parts, fmt.Sprintf("%s=%d and %d", names[d], low[d], high[d]))
	}
	sum := 0.0
	for corner := range 8 {
		share, at := 1.0, low
		for d := range at {
			if corner>>d&1 == 1 {
				share, at[d] = share*weight[d], high[d]
			} else {
				share *= 1 - weight[d]
			}
		}
		if share == 0 {
			continue
		}
		rate, ok := rates[at]
		if !ok {
			return 0, "", nil
		}
		sum += share * math.Log(rate)
	}
	return want.FLOPs() / math.Exp(sum), strings.Join(parts, ", "), nil
}
