package vm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed"
)

// Whatever a page's traces are, packing keeps every one, and packing again drops
// nothing and adds nothing.
func TestTracesArePacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var kept *traces
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			var page, back pageTraces
			for at := 0; at < pageWords; {
				n := min(rapid.IntRange(1, 40).Draw(t, "words"), pageWords-at)
				first := trace(rapid.Uint32().Draw(t, "first")) >> 1
				step := rapid.SampledFrom([]int{0, 1, 2, 4, 8, 16, 24, 8 << 9}).Draw(t, "step")
				if rapid.Bool().Draw(t, "none") {
					first, step = 0, 0
				}
				for i := range n {
					page[at+i] = first + trace(i*step/8)<<traceLane
				}
				at += n
			}
			kept = kept.pack(&page, true)
			kept.unpack(&back)
			require.Equal(t, page, back)
			for i := range page {
				require.Equal(t, page[i], kept.of(i))
			}
		}
	})
}

// Coalesced accesses take no more than their lines, whatever the lanes' width.
func TestCoalescedTracesAreRows(t *testing.T) {
	for name, lane := range map[string]func(word int) int{
		"halves":  func(w int) int { return 2*w%warpSize + 1 },
		"words":   func(w int) int { return w % warpSize },
		"pairs":   func(w int) int { return w / 2 % warpSize },
		"fours":   func(w int) int { return w / 4 % warpSize },
		"eights":  func(w int) int { return w / 8 % warpSize },
		"one":     func(int) int { return 7 },
		"nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var page pageTraces
			if lane != nil {
				for w := range page {
					page[w] = trace(w/warpSize+1)<<traceIndex | trace(lane(w))<<traceLane | bytesOfTrace
				}
			}
			var kept *traces
			kept = kept.pack(&page, true)
			require.Equal(t, lane == nil, kept == nil)
			if kept != nil {
				require.Empty(t, kept.odd)
			}
		})
	}
}
