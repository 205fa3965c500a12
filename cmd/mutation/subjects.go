package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/tune"
)

// own is a kernel of ours: a small problem of a family, and what of the default
// configuration is to be otherwise.
type own struct {
	family string
	gpu    string
	flags  string
	set    string
}

// ours are problems in which every way of lowering has its part: pipelines of
// cp.async, tensor maps and wgmma in roles and in clusters, a role that transposes,
// blocks that go from tile to tile, threads that copy for warpgroups and warpgroups
// that take turns, reductions within a warp and between warps, workspace that a second
// launch adds up.
var ours = []own{
	{"gemm", "a100", "m=72 n=56 k=152 dtype=f16 bias=true", "BM=32 BN=32 BK=32 warps=4 stages=3"},
	{"gemm", "a100", "m=40 n=72 k=128 dtype=f32 layout=nt", "BM=32 BN=32 BK=16 warps=4 stages=2 split=2"},
	{"gemm", "h100", "m=100 n=136 k=200 dtype=bf16", "BM=64 BN=64 BK=64 warps=4 stages=2"},
	{"gemm", "h100", "m=256 n=128 k=256 dtype=f16 layout=nt", "BM=64 BN=64 BK=64 warps=4 stages=3 group=4 cluster=2"},
	{"gemm", "h100", "m=256 n=128 k=128 dtype=bf16", "BM=64 BN=64 BK=64 warps=4 stages=2 group=4 cluster=2 persistent=1"},
	{"gemm", "h100", "m=256 n=136 k=192 dtype=bf16", "BM=64 BN=64 BK=64 warps=4 stages=2 group=1 cluster=1 persistent=2"},
	{"gemm", "h100", "m=200 n=72 k=128 dtype=bf16 bias=true", "BM=192 BN=64 BK=64 warps=12 stages=2 group=1 cluster=1"},
	{"gemm", "h100", "m=256 n=320 k=192 dtype=bf16", "BM=64 BN=64 BK=64 warps=4 stages=2 group=8 cluster=1 persistent=1 hilbert=4"},
	{"gemm", "h100", "m=128 n=80 k=176 dtype=e4m3", "BM=64 BN=64 BK=64 warps=4 stages=2 group=1 cluster=1 persistent=0"},
	{"gemm", "h100", "m=256 n=64 k=96 dtype=e5m2 layout=tn", "BM=64 BN=64 BK=32 warps=4 stages=2 group=4 cluster=2 persistent=1"},
	{"gemm", "h100", "m=100 n=72 k=200 dtype=f16", "BM=64 BN=64 BK=64 warps=4 stages=2 group=1 cluster=1 persistent=0 copy=1"},
	{"flashattn", "a100", "batch=1 heads=2 kv-heads=1 seq=90 seq-kv=130 head-dim=32", "BM=64 BN=32 warps=4 stages=2"},
	{"flashattn", "h100", "batch=1 heads=1 kv-heads=1 seq=128 seq-kv=192 head-dim=64", "BM=64 BN=64 warps=4 stages=2"},
	{"flashattn", "h100", "batch=1 heads=1 kv-heads=1 seq=100 seq-kv=150 head-dim=64 dtype=e4m3", "BM=64 BN=64 warps=4 stages=2 overlap=1"},
	{"flashattn", "h100", "batch=1 heads=1 kv-heads=1 seq=70 seq-kv=150 head-dim=64 causal=false", "BM=64 BN=64 warps=4 stages=2 overlap=0 copy=1"},
	{"flashattn", "h100", "batch=1 heads=1 kv-heads=1 seq=128 seq-kv=200 head-dim=64", "BM=128 BN=64 warps=8 stages=2 overlap=2"},
	{"flashattn", "h100", "batch=1 heads=2 kv-heads=1 seq=128 seq-kv=150 head-dim=64", "BM=64 BN=64 warps=4 stages=2 overlap=1 order=1 persistent=1"},
	{"layernorm", "a100", "rows=5 cols=700 dropout=0.1", "BM=1 BN=1024 warps=4 passes=1"},
	{"layernorm", "h100", "rows=3 cols=900 dtype=f32", "BM=1 BN=512 warps=2 passes=2"},
	{"layernorm", "h100", "rows=2 cols=4100 dtype=f16", "BM=1 BN=1024 warps=2 passes=2 keep=3 cluster=2"},
	{"softmax", "a100", "rows=5 cols=700", ""},
	{"softmax", "h100", "rows=3 cols=300", ""},
	{"paged", "a100", "batch=3 context=150 heads=4 kv-heads=2 head-dim=32 ragged=true", "BM=16 BN=32 warps=1 stages=2 chunk=128"},
	{"paged", "h100", "batch=2 context=100 heads=2 kv-heads=1 head-dim=64", "BM=16 BN=32 warps=1 stages=2"},
	{"paged-append", "a100", "batch=5 context=100 kv-heads=2 head-dim=32", ""},
	{"paged-append", "h100", "batch=3 context=70 kv-heads=2 head-dim=64", ""},
}

func (o own) name(via string) string { return fmt.Sprintf("%s %s, %s", o.family, o.gpu, via) }

// pairs reads "a=1 b=2".
func pairs(text string) map[string]string {
	m := map[string]string{}
	for _, word := range strings.Fields(text) {
		k, v, _ := strings.Cut(word, "=")
		m[k] = v
	}
	return m
}

// build makes the case of a kernel of ours, by our own PTX or NVRTC's (a compiler).
func (o own) build(ctx context.Context, by *nvrtc.Compiler) (*bench.Case, error) {
	gpu, err := target.Lookup(o.gpu)
	if err != nil {
		return nil, err
	}
	f, err := kernels.Family(o.family)
	if err != nil {
		return nil, err
	}
	p, err := f.Problem(pairs(o.flags), gpu)
	if err != nil {
		return nil, err
	}
	config, err := p.Default(gpu)
	if err != nil {
		return nil, err
	}
	for k, v := range pairs(o.set) {
		n, err := strconv.Atoi(v)
		if err != nil {
			return nil, err
		}
		config = config.With(k, n)
	}
	program, err := p.Program(config)
	if err != nil {
		return nil, err
	}
	c, err := codegen.Compile(program, gpu, codegen.Options{})
	if err != nil {
		return nil, err
	}
	plan, err := c.Plan(tune.Arguments(p.Args()))
	if err != nil {
		return nil, err
	}
	plan.Rounds(2)
	text, err := text(ctx, c, by)
	if err != nil {
		return nil, err
	}
	memory, err := memory(p, plan)
	if err != nil {
		return nil, err
	}
	return bench.PlanCase(o.family+".ptx", text, plan, memory), nil
}

func text(ctx context.Context, c *codegen.Compiled, by *nvrtc.Compiler) ([]byte, error) {
	if by == nil {
		text, err := c.PTX()
		return []byte(text), err
	}
	source, err := c.CUDA()
	if err != nil {
		return nil, err
	}
	res, err := by.Compile(ctx, nvrtc.Source{Name: "kernel.cu", Text: source}, nvrtc.Options{Arch: c.Module.Virtual(), Flags: cudac.Flags()})
	if err != nil {
		return nil, err
	}
	return res.PTX, nil
}

// memory is a problem's tensors with random contents, and the workspace.
func memory(p family.Problem, plan *codegen.Plan) ([]bench.CaseBuffer, error) {
	data, err := family.NewData(p.Args(), 1)
	if err != nil {
		return nil, err
	}
	var list []bench.CaseBuffer
	add := func(size int64, data []byte) {
		list = append(list, bench.CaseBuffer{Arg: len(list), Type: numcheck.U8, Shape: []int64{size}, Data: data})
	}
	for _, a := range p.Args() {
		if a.IsScalar() {
			add(0, nil)
			continue
		}
		x := data[a.Name]
		add(int64(len(x.Bytes)), x.Bytes)
	}
	for _, n := range plan.Workspace {
		add(n, nil)
	}
	return list, nil
}

// foreign reads the cases of a folder in which nothing is wrong.
func foreign(dir string) (map[string]*bench.Case, []string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "case.json"))
	if err != nil {
		return nil, nil, err
	}
	cases := map[string]*bench.Case{}
	var names []string
	for _, file := range files {
		c, err := bench.ReadCase(file)
		if err != nil {
			return nil, nil, err
		}
		if c.Fault == "" {
			name := filepath.Base(filepath.Dir(file))
			cases[name] = c
			names = append(names, name)
		}
	}
	return cases, names, nil
}
