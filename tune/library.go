package tune

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/attention"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/gemm"
	"github.com/kgen-dev/kgen/kernels/paged"
	"github.com/kgen-dev/kgen/roofline/measured"
)

// Library is what a library reached for a problem.
type Library struct {
	measured.Time
	Provenance bench.Provenance `json:"provenance"`
	Others     []measured.Time  `json:"others,omitempty"` // slower ones, and impossible ones
}

// LibraryPeaks is the best that libraries reach in the measured tables at any shape of a
// problem's operation and type; nil where the tables lack the GPU or the type.
func LibraryPeaks(p family.Problem, g *target.GPU) *measured.Peaks {
	var op measured.Op
	typ := ""
	switch p := p.(type) {
	case *gemm.Problem:
		op, typ = measured.GEMM, p.Type
	case *attention.Problem:
		op, typ = measured.Prefill, p.Type
	case *paged.Problem:
		op, typ = measured.Decode, p.Type
	}
	row, ok := measured.RowType(typ)
	if !ok {
		return nil
	}
	peaks, err := measured.Best(op, g.ID, row)
	if err != nil { // the tables lack it
		return nil
	}
	return peaks
}

// LibraryTime is what the fastest library in the measured tables takes for this
// problem, or for one between its neighbours there, which Match tells; nil where
// the tables lack both.
func LibraryTime(p family.Problem, g *target.GPU) (*Library, error) {
	var times []measured.Time
	var err error
	switch p := p.(type) {
	case *gemm.Problem:
		plain := gemm.Problem{M: p.M, N: p.N, K: p.K, Type: p.Type, Out: p.Type, Layout: p.Layout, Act: "none", Alpha: 1}
		if *p == plain {
			times, err = measured.LookupGEMM(g.ID, p.Type, p.M, p.N, p.K)
		}
	case *attention.Problem:
		if p.Causal && p.SeqKV >= p.Seq && p.HeadDimV == p.HeadDim {
			times, err = measured.LookupAttention(measured.Prefill, g.ID, p.Type, p.Type, measured.Attention{
				Batch: p.Batch, NewTokens: p.Seq, PastTokens: p.SeqKV - p.Seq, Heads: p.Heads, KVHeads: p.KVHeads, HeadDim: p.HeadDim,
			})
		}
	case *paged.Problem:
		if p.Query == 1 && !p.Ragged {
			times, err = measured.LookupAttention(measured.Decode, g.ID, p.Type, p.Type, measured.Attention{
				Batch: p.Batch, NewTokens: 1, PastTokens: p.Context - 1, Heads: p.Heads, KVHeads: p.KVHeads, HeadDim: p.HeadDim, Window: p.Window,
			})
		}
	}
	if err != nil || len(times) == 0 {
		return nil, err
	}
	return &Library{times[0], bench.Measured, times[1:]}, nil
}
