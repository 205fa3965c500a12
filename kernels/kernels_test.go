package kernels_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func gpu(t *testing.T, name string) *target.GPU {
	t.Helper()
	g, err := target.Lookup(name)
	require.NoError(t, err)
	return g
}

func problem(t *testing.T, name string, flags map[string]string, g *target.GPU) family.Problem {
	t.Helper()
	f, err := kernels.Family(name)
	require.NoError(t, err)
	p, err := f.Problem(flags, g)
	require.NoError(t, err)
	return p
}

type flags = map[string]string

func TestBadProblemsAreNamedInOneLine(t *testing.T) {
	for _, c := range []struct {
		family string
		flags  flags
		gpu    string
		want   string
	}{
		{"gemm", flags{"m": "0"}, "", "--m 0: want a whole number from 1 to 2147418112"},
		{"gemm", flags{"n": "-4"}, "", "--n -4: want a whole number from 1 to 2147418112"},
		{"gemm", flags{"k": "2147483648"}, "", "--k 2147483648: want a whole number from 1 to 2147418112"},
		{"gemm", flags{"k": "99999999999999999999"}, "", "--k 99999999999999999999: want a whole number from 1 to 2147418112"},
		{"gemm", flags{"m": "4k"}, "", "--m 4k: want a whole number from 1 to 2147418112"},
		{"gemm", flags{"dtype": "fp16"}, "", "--dtype fp16: want bf16, f16, tf32, f32, e4m3 or e5m2"},
		{"gemm", flags{"layout": "NN"}, "", "--layout NN: want nn, nt, tn or tt"},
		{"gemm", flags{"act": "swish"}, "", "--act swish: want none, relu, gelu or silu"},
		{"gemm", flags{"bias": "maybe"}, "", "--bias maybe: want true or false"},
		{"gemm", flags{"alpha": "inf"}, "", "--alpha inf: want a number from -3.4028e38 to 3.4028e38, the range of f32"},
		{"gemm", flags{"alpha": "nan"}, "", "--alpha nan: want a number from -3.4028e38 to 3.4028e38, the range of f32"},
		{"gemm", flags{"alpha": "-1e39"}, "", "--alpha -1e39: want a number from -3.4028e38 to 3.4028e38, the range of f32"},
		{"gemm", flags{"seq": "4", "heads": "3"}, "", "--heads: no such flag of gemm, want one of --m, --n, --k, --dtype, --out, --layout, --bias, --act, --residual, --alpha"},
		{"gemm", flags{"dtype": "bf16"}, "t4", "--dtype bf16: needs compute capability 8.0 and NVIDIA T4 has 7.5, want f16 or f32"},
		{"gemm", flags{"m": "2147418112", "n": "2147418112"}, "a100", "problem of 9.223e+09 GB: NVIDIA A100 SXM4 80GB has 80 GB of memory, want smaller sizes"},
		{"flashattn", flags{"head-dim": "100"}, "", "--head-dim 100: want a multiple of 16 from 16 to 256"},
		{"flashattn", flags{"head-dim": "7"}, "", "--head-dim 7: want a multiple of 16 from 16 to 256"},
		{"flashattn", flags{"head-dim": "272"}, "", "--head-dim 272: want a multiple of 16 from 16 to 256"},
		{"flashattn", flags{"heads": "32", "kv-heads": "5"}, "", "--heads 32, --kv-heads 5: want heads to be a multiple of kv-heads"},
		{"flashattn", flags{"seq-kv": "0"}, "", "--seq-kv 0: want a whole number from 1 to 2147418112"},
		{"flashattn", flags{"dtype": "tf32"}, "", "--dtype tf32: want bf16, f16, e4m3 or e5m2"},
		{"flashattn", flags{"dtype": "bf16"}, "t4", "--dtype bf16: needs compute capability 8.0 and NVIDIA T4 has 7.5, want f16"},
		{"layernorm", flags{"cols": "1048577"}, "", "--cols 1048577: want a whole number from 1 to 1048576"},
		{"layernorm", flags{"dropout": "1"}, "", "--dropout 1: want a number from 0 to below 1"},
		{"layernorm", flags{"dropout": "-0.1"}, "", "--dropout -0.1: want a number from 0 to below 1"},
		{"layernorm", flags{"eps": "1e39"}, "", "--eps 1e39: want a number from 0 to 3.4028e38, the range of f32"},
		{"layernorm", flags{"eps": "-1e-9"}, "", "--eps -1e-9: want a number from 0 to 3.4028e38, the range of f32"},
		{"layernorm", flags{"weight": "bf16"}, "t4", "--weight bf16: needs compute capability 8.0 and NVIDIA T4 has 7.5, want same, f16, f32 or none"},
		{"paged", flags{"page": "3"}, "", "--page 3: want a power of two from 1 to 256"},
		{"paged", flags{"page": "512"}, "", "--page 512: want a whole number from 1 to 256"},
		{"paged", flags{"context": "-1"}, "", "--context -1: want a whole number from 1 to 2147418112"},
		{"paged", flags{"heads": "6"}, "", "--heads 6, --kv-heads 8: want heads to be a multiple of kv-heads"},
		{"paged", flags{"chunk": "100"}, "", "--chunk 100: want 0, 128, 256, 512, 1024, 2048 or 4096"},
		{"softmax", flags{"rows": ""}, "", "--rows : want a whole number from 1 to 2147418112"},
	} {
		f, err := kernels.Family(c.family)
		require.NoError(t, err)
		var g *target.GPU
		if c.gpu != "" {
			g = gpu(t, c.gpu)
		}
		_, err = f.Problem(c.flags, g)
		require.EqualError(t, err, c.want)
	}
	var names []string
	for _, f := range kernels.Families() {
		names = append(names, f.Name)
	}
	_, err := kernels.Family("gem")
	require.EqualError(t, err, `unknown family "gem": want one of `+strings.Join(names, ", "))
}

func TestDefaults(t *testing.T) {
	h100, t4 := gpu(t, "h100"), gpu(t, "t4")
	require.Equal(t, family.Settings{
		{Name: "batch", Value: "4"}, {Name: "heads", Value: "32"}, {Name: "kv-heads", Value: "8"}, {Name: "seq", Value: "4096"},
		{Name: "seq-kv", Value: "4096"}, {Name: "head-dim", Value: "128"}, {Name: "causal", Value: "true"}, {Name: "dtype", Value: "bf16"},
	}, problem(t, "flashattn", nil, h100).Settings())
	p := problem(t, "gemm", flags{"k": "+77", "alpha": "0.50", "bias": "1"}, h100).Settings()
	require.Equal(t, "m=4096 n=4096 k=77 dtype=bf16 out=bf16 layout=nn bias=true act=none residual=false alpha=0.5", p.String())
	json, err := p.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"m":4096,"n":4096,"k":77,"dtype":"bf16","out":"bf16","layout":"nn","bias":true,"act":"none","residual":false,"alpha":0.5}`, string(json))
	for _, f := range kernels.Families() {
		require.Contains(t, problem(t, f.Name, nil, h100).Settings(), family.Setting{Name: "dtype", Value: "bf16"})
		require.Contains(t, problem(t, f.Name, nil, t4).Settings(), family.Setting{Name: "dtype", Value: "f16"})
	}
}

// Formulas against figures worked out by hand.
func TestWork(t *testing.T) {
	w := problem(t, "gemm", flags{"m": "128", "n": "64", "k": "32", "bias": "true", "residual": "true", "act": "silu"}, nil).Work()
	require.Equal(t, family.Work{
		Math: target.BF16, FLOPs: 2 * 128 * 64 * 32, Exp2: 128 * 64,
		Bytes: 2*(128*32+32*64) + 4*64 + 2*2*128*64,
	}, w)
	w = problem(t, "flashattn", flags{"batch": "2", "heads": "6", "kv-heads": "3", "seq": "3", "seq-kv": "5", "head-dim": "16", "dtype": "f16"}, nil).Work()
	require.Equal(t, family.Work{ // queries see 3, 4 and 5 keys
		Math: target.F16Acc32, FLOPs: 2 * 6 * 4 * 16 * 12, Exp2: 2 * 6 * 12,
		Bytes: 2*16*(2*2*6*3+2*2*3*5) + 4*2*6*3,
	}, w)
	w = problem(t, "flashattn", flags{"batch": "2", "heads": "6", "kv-heads": "3", "seq": "3", "seq-kv": "5", "head-dim": "48", "head-dim-v": "16"}, nil).Work()
	require.Equal(t, 2.0*6*2*(48+16)*12, w.FLOPs)
	require.Equal(t, 2.0*2*((48+16)*(6*3+3*5))+4*2*6*3, w.Bytes)
	w = problem(t, "flashattn", flags{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "5", "seq-kv": "3"}, nil).Work()
	require.Equal(t, 6.0, w.Exp2) // queries see 0, 0, 1, 2 and 3 keys
	w = problem(t, "flashattn", flags{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "5", "seq-kv": "3", "causal": "false"}, nil).Work()
	require.Equal(t, 15.0, w.Exp2)
	require.Equal(t, 2.0*4096*4096*2, problem(t, "softmax", nil, nil).Work().Bytes)
	w = problem(t, "paged", flags{"batch": "2", "query": "3", "context": "50", "heads": "6", "kv-heads": "3", "head-dim": "16", "window": "10"}, nil).Work()
	require.Equal(t, family.Work{ // each query sees 10 keys, together the last 12, on pages 2 and 3
		Math: target.BF16, FLOPs: 4 * 16 * 2 * 3 * 10 * 6, Exp2: 2 * 3 * 10 * 6,
		Bytes: 2*16*(2*2*3*6+2*2*12*3) + 4*2*3*6 + 4*2*2 + 4*2,
	}, w)
	w = problem(t, "paged-append", flags{"batch": "2", "query": "3", "context": "50", "kv-heads": "3", "head-dim": "16"}, nil).Work()
	require.Equal(t, family.Work{ // tokens 47, 48 and 49, on pages 2 and 3
		Math: target.BF16, Bytes: 2*2*2*2*3*3*16 + 4*2*2 + 4*2,
	}, w)
	w = problem(t, "layernorm", flags{"rows": "3", "cols": "10", "residual": "f32", "weight": "f16"}, nil).Work()
	require.Equal(t, family.Work{ // x and y, the residual in and out, weight and bias, mean and rstd
		Math: target.F32, FLOPs: 9 * 3 * 10, Bytes: 3*10*(2+2) + 3*10*(4+4) + 10*(2+2) + 3*(4+4),
	}, w)
	w = problem(t, "layernorm", flags{"rows": "3", "cols": "10", "norm": "rms", "residual": "none", "write-residual": "false", "weight": "none", "bias": "none", "stats": "false", "dropout": "0"}, nil).Work()
	require.Equal(t, family.Work{Math: target.F32, FLOPs: 3 * 3 * 10, Bytes: 3 * 10 * (2 + 2)}, w)
}

// Every GPU with tensor cores for the type has enough to search, and a default among it.
func TestSpacesAreLargeEnough(t *testing.T) {
	for _, g := range target.All() {
		if !g.CC.AtLeast(8, 0) {
			continue
		}
		for _, dtype := range []string{"bf16", "f16", "tf32", "f32"} {
			requireSpace(t, problem(t, "gemm", flags{"dtype": dtype}, g), g, 60)
		}
		requireSpace(t, problem(t, "flashattn", nil, g), g, 60)
		requireSpace(t, problem(t, "flashattn", flags{"head-dim": "64", "causal": "false"}, g), g, 60)
		requireSpace(t, problem(t, "flashattn", flags{"head-dim": "256"}, g), g, 20)
		requireSpace(t, problem(t, "softmax", nil, g), g, 60)
		requireSpace(t, problem(t, "layernorm", nil, g), g, 20)
		requireSpace(t, problem(t, "paged", nil, g), g, 60)
		requireSpace(t, problem(t, "paged", flags{"context": "1", "head-dim": "256", "heads": "8", "chunk": "256"}, g), g, 1)
		requireSpace(t, problem(t, "layernorm", flags{"cols": "1"}, g), g, 1)
		requireSpace(t, problem(t, "layernorm", flags{"rows": "1", "cols": "1048576"}, g), g, 20)
		requireSpace(t, problem(t, "gemm", flags{"m": "1", "n": "1", "k": "1"}, g), g, 1)
		if g.CC.AtLeast(8, 9) {
			requireSpace(t, problem(t, "gemm", flags{"m": "64", "n": "64", "k": "16", "dtype": "e4m3"}, g), g, 1)
		}
		requireSpace(t, problem(t, "gemm", flags{"m": "64", "n": "64", "k": "16384"}, g), g, 60)
		requireSpace(t, problem(t, "flashattn", flags{"seq": "1", "seq-kv": "1", "head-dim": "240"}, g), g, 1)
	}
	requireSpace(t, problem(t, "gemm", nil, gpu(t, "t4")), gpu(t, "t4"), 60)
	requireSpace(t, problem(t, "flashattn", nil, gpu(t, "t4")), gpu(t, "t4"), 30)
}

func requireSpace(t *testing.T, p family.Problem, g *target.GPU, least int64) {
	t.Helper()
	b, err := p.Space(g)
	require.NoError(t, err)
	require.GreaterOrEqual(t, b.Count().Valid, least, "%s %v: %s", g.ID, p.Settings(), b.Count())
	c, err := p.Default(g)
	require.NoError(t, err)
	require.NoError(t, b.Check(c))
}

func TestProgramsRefuseWhatTheParametersDoNotAllow(t *testing.T) {
	for _, f := range kernels.Families() {
		p := problem(t, f.Name, nil, nil)
		c, err := p.Default(gpu(t, "a100"))
		require.NoError(t, err)
		_, err = p.Program(c.With("BM", 100))
		require.ErrorContains(t, err, "BM cannot be 100, want one of ")
		_, err = p.Parts(c.With("BM", 0), nil, 1)
		require.ErrorContains(t, err, "BM cannot be 0, want one of ")
	}
}

// Programs of random problems and configurations are valid, have the arguments that the
// problem lists, and come back from their text.
func TestProgramsAreValid(t *testing.T) {
	g := gpu(t, "a100")
	for _, f := range kernels.Families() {
		r := rand.New(rand.NewPCG(3, 4))
		for range 100 {
			p := f.Awkward(r)
			prog := programOf(t, p, g, r)
			args := p.Args()
			require.Len(t, prog.Params, len(args))
			for i, a := range args {
				require.Equal(t, a.Name, prog.Params[i].Name)
				require.Equal(t, a.Elem, prog.Params[i].Type.Elem)
				require.Len(t, a.Dims, prog.Params[i].Type.Rank())
			}
			text := prog.String()
			back, err := ir.Parse("program.tile", []byte(text))
			require.NoError(t, err, text)
			require.Equal(t, text, back.String())
		}
	}
}

func programOf(t *testing.T, p family.Problem, g *target.GPU, r *rand.Rand) *ir.Program {
	t.Helper()
	b, err := p.Space(g)
	require.NoError(t, err)
	c, err := family.Draw(r, b)
	require.NoError(t, err, "%v", p.Settings())
	prog, err := p.Program(c)
	require.NoError(t, err, "%s, %s", p.Settings(), c)
	require.NoError(t, ir.Verify(prog))
	return prog
}

// A program doesn't depend on the sizes, only on what they allow to assume.
func TestOneProgramServesAllSizes(t *testing.T) {
	g := gpu(t, "a100")
	for name, pair := range map[string][2]flags{
		"gemm":         {{"m": "512", "n": "1024", "k": "640"}, nil},
		"flashattn":    {{"batch": "1", "heads": "8", "kv-heads": "1", "seq": "333", "seq-kv": "777"}, nil},
		"layernorm":    {{"rows": "3", "cols": "3000"}, nil},
		"paged":        {{"batch": "3", "context": "1000", "query": "5", "ragged": "true"}, nil},
		"paged-append": {{"batch": "3", "context": "1000", "query": "5", "ragged": "true", "kv-heads": "3"}, nil},
		"softmax":      {{"rows": "3", "cols": "80000"}, nil},
	} {
		p, q := problem(t, name, pair[0], g), problem(t, name, pair[1], g)
		c, err := q.Default(g)
		require.NoError(t, err)
		x, err := p.Program(c)
		require.NoError(t, err)
		y, err := q.Program(c)
		require.NoError(t, err)
		require.Equal(t, y.String(), x.String())
	}
}

func TestGoldenPrograms(t *testing.T) {
	g := gpu(t, "a100")
	type golden struct {
		family string
		flags  flags
		set    []string
	}
	cases := map[string]golden{
		"gemm_tt_epilogue":    {"gemm", flags{"layout": "tt", "bias": "true", "act": "gelu", "residual": "true", "alpha": "0.5", "out": "f32"}, nil},
		"gemm_unaligned_tf32": {"gemm", flags{"m": "100", "n": "333", "k": "77", "dtype": "tf32", "act": "silu"}, []string{"BM=64", "BN=64", "BK=16"}},
		"gemm_split":          {"gemm", flags{"m": "64", "n": "128", "k": "8192", "bias": "true", "act": "relu"}, []string{"split=4"}},
		"flashattn_full_f16":  {"flashattn", flags{"causal": "false", "dtype": "f16", "head-dim": "80"}, []string{"BN=176"}},
		"layernorm_kept":      {"layernorm", flags{"cols": "40960"}, nil},
		"layernorm_two":       {"layernorm", flags{"cols": "100001", "dtype": "f16", "residual": "f32", "weight": "f32", "dropout": "0"}, nil},
		"layernorm_rms":       {"layernorm", flags{"cols": "100001", "norm": "rms", "residual": "none", "bias": "none", "stats": "false"}, nil},
		"paged_pieces":        {"paged", flags{"batch": "1", "page": "1", "layout": "hnd", "window": "1000", "query": "7", "dtype": "f16"}, nil},
	}
	for _, f := range kernels.Families() {
		cases[f.Name] = golden{family: f.Name}
	}
	for file, c := range cases {
		p := problem(t, c.family, c.flags, g)
		cfg, err := p.Default(g)
		require.NoError(t, err)
		b, err := p.Space(g)
		require.NoError(t, err)
		cfg, err = b.Space().Override(cfg, c.set)
		require.NoError(t, err)
		prog, err := p.Program(cfg)
		require.NoError(t, err)
		path := filepath.Join("..", "testdata", "tile", "families", file+".tile")
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(prog.String()), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		if diff := cmp.Diff(string(want), prog.String()); diff != "" {
			t.Errorf("%s: run with -update if the change is meant:\n%s", path, diff)
		}
	}
}

// elements is how many elements of an output are written.
func elements(t *testing.T, p family.Problem, a family.Arg) int {
	t.Helper()
	n := 1
	for _, d := range a.Dims {
		n *= d
	}
	if !a.Partial {
		return n
	}
	d, err := family.NewData(p.Args(), 1)
	require.NoError(t, err)
	e, err := p.Expect(d, a.Whole())
	require.NoError(t, err)
	require.Len(t, e.Want, n)
	return len(slices.DeleteFunc(e.Want, math.IsNaN))
}

// The parts of a run, all of them, write every element of every output once.
func TestPartsCoverTheOutputs(t *testing.T) {
	g := gpu(t, "a100")
	for _, f := range kernels.Families() {
		r := rand.New(rand.NewPCG(5, 6))
		for range 20 {
			p := f.Awkward(r)
			b, err := p.Space(g)
			require.NoError(t, err)
			c, err := family.Draw(r, b)
			require.NoError(t, err)
			parts, err := p.Parts(c, r, 1<<20)
			require.NoError(t, err)
			written := map[string]int{}
			for _, part := range parts {
				for _, region := range part.Regions {
					n := 1
					for d := range region.Lo {
						n *= region.Hi[d] - region.Lo[d]
					}
					written[region.Out] += n
				}
			}
			for _, a := range p.Args() {
				if a.Out {
					n := elements(t, p, a)
					require.Equal(t, n, written[a.Name], "%s of %v, %s", a.Name, p.Settings(), c)
				}
			}
		}
	}
}
