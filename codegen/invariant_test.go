package codegen_test

import (
	"bytes"
	"maps"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// TestPagedIsBatchInvariant runs a sequence alone and in a batch, with its pages at other
// places: the result is the same to the bit, in one piece and in several.
func TestPagedIsBatchInvariant(t *testing.T) {
	f, err := kernels.Family("paged")
	require.NoError(t, err)
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	for _, chunk := range []int{0, 128} {
		config := space.Of("BM", 16, "BN", 32, "chunk", chunk, "warps", 1, "stages", 2)
		run := func(batch string, fill func(family.Data)) family.Data {
			p, err := f.Problem(map[string]string{
				"batch": batch, "context": "500", "ragged": "true", "query": "2", "heads": "6", "kv-heads": "2", "head-dim": "32",
			}, gpu)
			require.NoError(t, err)
			s := &sample{f: f, p: p, c: config, gpu: gpu}
			s.prog, err = p.Program(config)
			require.NoError(t, err)
			s.data, err = family.NewData(p.Args(), 1)
			require.NoError(t, err)
			fill(s.data)
			c, err := codegen.Compile(s.prog, gpu, codegen.Options{})
			require.NoError(t, err)
			text, err := c.PTX()
			require.NoError(t, err)
			args, outs := s.args()
			requireNoFaults(t, runOn(t, vm.Options{GPU: gpu}, c, text, args, 0))
			for name, o := range outs {
				s.data[name].Bytes = o.Data
			}
			return s.data
		}
		many := run("3", func(family.Data) {})
		require.Greater(t, many["len"].At(0), 128.0)
		alone := run("1", func(d family.Data) {
			require.Equal(t, many["len"].At(0), d["len"].At(0))
			copyPages(d, many)
		})
		for _, out := range []string{"o", "lse"} {
			require.Equal(t, alone[out].Bytes, many[out].Bytes[:len(alone[out].Bytes)], "%s, pieces of %d", out, chunk)
		}
	}
}

// TestLengthsThatAreNone gives paged kernels lengths below 0 and beyond the table, which a
// launch cannot check: they end, and nothing outside is touched. A sequence of a negative
// length is an empty one, and one beyond the table is as long as the table; tokens beyond it
// are not appended.
func TestLengthsThatAreNone(t *testing.T) {
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	const capacity = 304 // 19 pages of 16 tokens
	for _, tt := range []struct {
		family string
		config space.Config
		more   map[string]string
	}{
		{"paged", space.Of("BM", 16, "BN", 32, "chunk", 0, "warps", 1, "stages", 2), nil},
		{"paged", space.Of("BM", 16, "BN", 32, "chunk", 0, "warps", 1, "stages", 2), map[string]string{"window": "40"}},
		{"paged", space.Of("BM", 16, "BN", 32, "chunk", 128, "warps", 1, "stages", 2), nil},
		{"paged", space.Of("BM", 16, "BN", 16, "chunk", 128, "warps", 1, "stages", 1), map[string]string{"window": "40"}},
		{"paged-append", space.Of("BM", 4, "warps", 1), nil},
	} {
		f, err := kernels.Family(tt.family)
		require.NoError(t, err)
		flags := map[string]string{"batch": "4", "context": strconv.Itoa(capacity), "query": "2", "kv-heads": "8", "head-dim": "32"}
		maps.Copy(flags, tt.more)
		p, err := f.Problem(flags, gpu)
		require.NoError(t, err)
		s := sampleOf(t, f, p, tt.config, gpu)
		run := func(lengths ...int64) map[string]*eval.Tensor {
			for b, n := range lengths {
				s.data["len"].SetInt(n, b)
			}
			return s.runPTX(t)
		}
		want := run(0, 0, capacity, capacity)
		if tt.family == "paged-append" {
			want = run(0, 0, 0, 0)
		}
		for _, lengths := range [][]int64{{-7, -1, capacity + 2, 1000}, {math.MinInt32, math.MinInt32 + 1, math.MaxInt32 - 31, math.MaxInt32}} {
			got := run(lengths...)
			for name, w := range want {
				require.True(t, bytes.Equal(w.Data, got[name].Data), "%s: %s of lengths %d", s, name, lengths)
			}
		}
	}
}

// TestPagesAreLookedUpOnce holds that a step looks an entry of the block table up once for
// all tokens of the page; where these are few, one lane does and tells the others.
func TestPagesAreLookedUpOnce(t *testing.T) {
	f, err := kernels.Family("paged")
	require.NoError(t, err)
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	const blocks, steps = 2, 512 / 64
	for page, lookups := range map[string]int{"1": 64 / 32, "4": 1, "16": 64 / 16, "64": 1, "256": 1} { // of a warp
		p, err := f.Problem(map[string]string{"batch": "1", "context": "512", "heads": "8", "kv-heads": "2", "page": page}, gpu)
		require.NoError(t, err)
		s := sampleOf(t, f, p, space.Of("BM", 16, "BN", 64, "chunk", 0, "warps", 1, "stages", 2), gpu)
		n := s.counters(t)
		require.LessOrEqual(t, n.Global.Loads.Requests, int64(blocks*(steps*2*lookups+2)), "page %s", page)
		require.GreaterOrEqual(t, n.Global.Copies.Requests, int64(blocks*steps*2*64/2)) // keys and values, 16 lanes a row
	}
}

// copyPages gives the first sequence the queries, keys and values of another batch's.
func copyPages(to, from family.Data) {
	copy(to["q"].Bytes, from["q"].Bytes)
	for i := range int(to["len"].At(0)+15) / 16 {
		x, y := to["table"].At(0, i), from["table"].At(0, i)
		for _, name := range []string{"k", "v"} {
			n := to[name].Strides[0] * 2 // bytes of a page
			copy(to[name].Bytes[int(x)*n:][:n], from[name].Bytes[int(y)*n:])
		}
	}
}
