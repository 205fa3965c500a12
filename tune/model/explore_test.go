package model

import (
	"fmt"
	"os"
	"sort"
	"testing"
	"time"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/stretchr/testify/require"
)

func planOf(t testing.TB, c *codegen.Compiled, p family.Problem) *codegen.Plan {
	var args []codegen.Argument
	for _, a := range p.Args() {
		var x codegen.Argument
		for i := range a.Dims {
			x.Dims = append(x.Dims, int64(a.Dims[i]))
			x.Strides = append(x.Strides, int64(a.Strides[i]))
		}
		args = append(args, x)
	}
	plan, err := c.Plan(args)
	require.NoError(t, err)
	return plan
}

func TestExplore(t *testing.T) {
	fam, gpuName := os.Getenv("FAM"), os.Getenv("GPU")
	if fam == "" {
		t.Skip()
	}
	gpu, err := target.Lookup(gpuName)
	require.NoError(t, err)
	f, err := kernels.Family(fam)
	require.NoError(t, err)
	flags := map[string]string{}
	if s := os.Getenv("SIZE"); s != "" {
		flags["m"], flags["n"], flags["k"] = s, s, s
	}
	p, err := f.Problem(flags, gpu)
	require.NoError(t, err)
	b, err := p.Space(gpu)
	require.NoError(t, err)
	type row struct {
		c  string
		p  *Prediction
		dt time.Duration
	}
	var rows []row
	n := 0
	step := int(max(1, b.Count().Valid/40))
	if os.Getenv("ALL") != "" {
		step = 1
	}
	var lower, predict time.Duration
	for c := range b.All() {
		n++
		if n%step != 0 {
			continue
		}
		prog, err := p.Program(c)
		require.NoError(t, err)
		t0 := time.Now()
		k, err := codegen.Compile(prog, gpu, codegen.Options{})
		t1 := time.Now()
		if err != nil {
			fmt.Println(c, err)
			continue
		}
		pr, err := Predict(gpu, k, planOf(t, k, p), nil)
		lower += t1.Sub(t0)
		predict += time.Since(t1)
		if err != nil {
			fmt.Println(c, err)
			continue
		}
		rows = append(rows, row{c.String(), pr, time.Since(t1)})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].p.US < rows[j].p.US })
	flops := p.Work().FLOPs
	peak, _ := gpu.Peak(p.Work().Math)
	fmt.Println("dense peak time", flops/peak.TFLOPS/1e6, "lower", lower/time.Duration(len(rows)), "predict", predict/time.Duration(len(rows)))
	for i, r := range rows {
		if i > 25 && os.Getenv("ALL") != "" {
			break
		}
		s := r.p.Steps[0]
		terms := ""
		for _, x := range s.Terms {
			terms += fmt.Sprintf(" %s %.0f", x.Name, x.US)
		}
		fmt.Printf("%-55s %7.0f us %5.0f TF occ %d by %s regs %d waves %.2f |%s | hbm %.0f MB unk %d\n", r.c, r.p.US, flops/r.p.US/1e6, s.Occupancy.CTAs, s.Occupancy.Limiter, s.Registers, s.Waves, terms, r.p.Work.HBMBytes.Value/1e6, s.Unknown)
	}
}
