package tune

import (
	"strconv"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/roofline/measured"
)

// library returns what the fastest library in the measured tables takes for exactly
// this problem; nil where the tables lack it.
func library(name string, s family.Settings, g *target.GPU) (*measured.Time, error) {
	v := map[string]string{}
	for _, x := range s {
		v[x.Name] = x.Value
	}
	size := func(name string) int {
		n, err := strconv.Atoi(v[name])
		if err != nil {
			return 0
		}
		return n
	}
	var times []measured.Time
	var err error
	switch name {
	case "gemm":
		if !plainGEMM(v) {
			return nil, nil
		}
		times, err = measured.LookupGEMM(g.ID, v["dtype"], size("m"), size("n"), size("k"))
	case "flashattn":
		past := size("seq-kv") - size("seq")
		if v["causal"] != "true" || past < 0 {
			return nil, nil
		}
		times, err = measured.LookupAttention(measured.Prefill, g.ID, v["dtype"], v["dtype"], measured.Attention{
			Batch: size("batch"), NewTokens: size("seq"), PastTokens: past,
			Heads: size("heads"), KVHeads: size("kv-heads"), HeadDim: size("head-dim"),
		})
	}
	if err != nil || len(times) == 0 {
		return nil, err
	}
	return &times[0], nil
}

// plainGEMM tells whether a product is what the tables time: C = A B, nothing more.
func plainGEMM(v map[string]string) bool {
	return v["bias"] != "true" && v["act"] == "none" && v["residual"] != "true" && v["alpha"] == "1" && v["pad"] == ""
}
