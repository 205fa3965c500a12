package cli

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune"
)

// checkFlags are what kgen check takes beside the problem.
type checkFlags struct {
	set   []string
	via   choice
	maps  choice
	parts int
	vm    machineFlags
	lines bool
}

// checkReport is what kgen check --json prints.
type checkReport struct {
	Kernel     string           `json:"kernel"`
	GPU        string           `json:"gpu"`
	Problem    family.Settings  `json:"problem"`
	Config     space.Config     `json:"config"`
	Via        string           `json:"via"`
	Device     string           `json:"device"`
	OK         bool             `json:"ok"`
	BlocksRun  int64            `json:"blocks_run"`
	Blocks     int64            `json:"blocks"` // of all launches of the problem
	Regions    []regionReport   `json:"regions"`
	Faults     []bench.Fault    `json:"faults"`
	Counters   bench.Counters   `json:"counters"`
	Provenance bench.Provenance `json:"provenance"` // of the counters

	Lines []bench.LineCount `json:"lines,omitempty"` // the counters by line, where asked for
}

// regionReport is a box of an output that was compared with the reference.
type regionReport struct {
	Output string `json:"output"`
	Lo     []int  `json:"lo"`
	Hi     []int  `json:"hi"`
	// Error is of the element nearest to its tolerance or furthest beyond it, which
	// Tolerance is for: |got - want|.
	Error     float64 `json:"error"`
	Tolerance float64 `json:"tolerance"`
	Wrong     string  `json:"wrong,omitempty"`
}

func (a *app) checkCommand() *cobra.Command {
	f := &checkFlags{via: choice{value: "ptx", words: []string{"ptx", "nvrtc"}}, maps: *mapsChoice(), vm: newMachineFlags()}
	var file launchFlags
	return a.familyCommand(familyVerb{
		name:  "check",
		short: "Check a configuration, or anybody's kernel, on the virtual machine",
		long: `Check one configuration of a family: compile it, run pieces of the problem on the
virtual machine over random data, and compare what they compute with the float64
reference. The pieces are at the corners of the tile space first, where its
edges are. Without --set the configuration is the problem's default. --lines counts
by line of what kgen emit --stage ptx prints, with --via nvrtc of --stage cuda.

A file of PTX, or of CUDA C by way of NVRTC for the --gpu (default h100), is run from
flags as kgen run runs a case: --arg for each parameter, in their order, is
  i32=1000, f32=0.5, bytes=00ff       a value
  f32[1000]:random, u8[2x64]:zeros    a buffer; iota counts, none was never written
  f16:x.npy, f32[100]:none,want=y.npy a buffer from a file; what it must hold at the end

The exit code is 0 when everything compared is right and no fault was reported,
and 3 when not.`,
		example: `  kgen check gemm --gpu a100 --m 1000 --n 777 --k 333
  kgen check flashattn --gpu h100 --seq 1021 --set BM=64 --set BN=32 --async random --seed 5
  kgen check softmax --gpu rtx4090 --cols 1001 --via nvrtc --json
  kgen check flashattn --gpu h100 --set 'BM=64 BN=32 warps=4' --via nvrtc --lines
  kgen check add.cu --gpu a100 --grid 8 --block 128 --arg f32[1000]:random --arg f32[1000]:none --arg i32=1000`,
		flags: func(c *cobra.Command) {
			settingFlag(c, &f.set)
			choiceFlag(c, &f.via, "via", "whose PTX runs: our own, or NVRTC's of our CUDA C")
			choiceFlag(c, &f.maps, "maps", mapsDoc)
			c.Flags().IntVar(&f.parts, "parts", 4, "run `N` pieces of the problem")
			f.vm.declare(c)
			linesFlag(c, &f.lines)
			a.jsonFlag(c)
		},
		run:       func(ctx context.Context, j *job) error { return a.check(ctx, j, f) },
		endings:   []string{".cu", ".ptx"},
		fileFlags: file.declare,
		file: func(ctx context.Context, name, gpu string) error {
			file.extent.lines = f.lines
			return a.checkFile(ctx, name, gpu, &f.vm, &file)
		},
	})
}

func (a *app) check(ctx context.Context, j *job, f *checkFlags) error {
	if f.parts < 1 {
		return usagef("--parts %d: want 1 or more", f.parts)
	}
	dev, err := f.vm.open(j.gpu)
	if err != nil {
		return usage(err)
	}
	defer dev.Close()
	config, err := j.config(f.set)
	if err != nil {
		return err
	}
	r := &checkReport{
		Kernel: j.family.Name, GPU: j.gpu.ID, Problem: j.problem.Settings(), Config: config, Via: f.via.value,
		Device: dev.Name(), Provenance: dev.Provenance(), Faults: []bench.Fault{},
	}
	if err := r.run(ctx, j, f, dev); err != nil {
		return err
	}
	if err := a.printCheck(r); err != nil {
		return err
	}
	if !r.OK {
		return wrong(fmt.Errorf("%s: %s", r.Kernel, r.firstWrong()))
	}
	return nil
}

// maxCheckBytes bounds the memory of this machine that a check takes.
const maxCheckBytes = 4 << 30

// Bytes that a check takes of this machine beside the tensors on the host.
const (
	// deviceShare is for each byte of the virtual machine's memory: the byte, and
	// a bit that says whether it was written.
	deviceShare = 1 + 1.0/8
	// referenceBytes is for each element of the largest region that is compared at
	// a time: four float64 wanted, allowed and found, and one of the input.
	referenceBytes = 40
	// blockBytes is for the blocks that run beside one another, each with copies
	// and shadows of up to 4096 pages.
	blockBytes = 128 << 20
)

// checkable refuses a problem whose check would take too much of this machine's
// memory: the tensors twice, here and on the virtual machine, its workspace and
// the reference.
func checkable(p family.Problem, plan *codegen.Plan, parts []family.Part) error {
	tensors, total := 0.0, float64(blockBytes)
	for _, a := range p.Args() {
		if !a.IsScalar() {
			tensors += float64(a.Elements()) * float64(a.Elem.MemoryBits()) / 8
		}
	}
	total += tensors * (1 + deviceShare)
	for _, n := range plan.Workspace {
		total += float64(n) * deviceShare
	}
	largest := 0.0
	for _, part := range parts {
		for _, r := range part.Regions {
			n := 1.0
			for d := range r.Lo {
				n *= float64(r.Hi[d] - r.Lo[d])
			}
			largest = max(largest, n)
		}
	}
	if total += largest * referenceBytes; total > maxCheckBytes {
		return usagef("problem of %.3g GB: its check takes %.3g GB of this machine's memory, at most %.3g GB are allowed: want smaller sizes",
			tensors/1e9, total/1e9, maxCheckBytes/1e9)
	}
	return nil
}

// run compiles the configuration, runs pieces of the problem and compares them.
func (r *checkReport) run(ctx context.Context, j *job, f *checkFlags, dev bench.Device) error {
	c, plan, err := j.lower(r.Config, codegen.Options{Verify: true, Prologue: f.maps.value == byPrologue})
	if err != nil {
		return err
	}
	text, err := ptxText(ctx, c, f.via.value, r.Kernel)
	if err != nil {
		return err
	}
	if err := checkable(j.problem, plan, nil); err != nil { // before parts of what is too large are drawn
		return err
	}
	parts, err := j.problem.Parts(r.Config, rand.New(rand.NewPCG(f.vm.seed, 0)), f.parts)
	if err != nil {
		return err
	}
	if err := checkable(j.problem, plan, parts); err != nil {
		return err
	}
	data, err := family.NewData(j.problem.Args(), f.vm.seed)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return usagef("%s: nothing to check: no block writes anything of %s: want longer sequences, or more of them", j.family.Name, j.problem.Settings())
	}
	if f.lines {
		dev = byLine{dev}
	}
	v := &checkRun{dev: dev, args: j.problem.Args(), data: data}
	if err := v.launch(ctx, c, text, parts); err != nil {
		return err
	}
	r.Faults = append(r.Faults, v.faults...)
	r.Counters, r.BlocksRun, r.Blocks = v.counters, v.counters.Blocks, v.blocks
	r.Lines = bench.SumLines(v.lines)
	for _, p := range parts {
		for _, region := range p.Regions {
			if err := r.compare(j.problem, data, region); err != nil {
				return err
			}
		}
	}
	r.OK = len(r.Faults) == 0 && r.firstWrong() == ""
	return nil
}

// ptxText is the PTX to run: ours, or what NVRTC makes of our CUDA C.
func ptxText(ctx context.Context, c *codegen.Compiled, via, name string) (string, error) {
	if via == "ptx" {
		return c.PTX()
	}
	text, err := c.CUDA()
	if err != nil {
		return "", compileError(err)
	}
	compiler, err := nvrtc.Find()
	if err != nil {
		return "", fmt.Errorf("%w; --via ptx does without NVRTC", err)
	}
	res, err := compiler.Compile(ctx, nvrtc.Source{Name: name + ".cu", Text: text}, nvrtc.Options{Arch: c.Module.Virtual(), Flags: cudac.Flags(), LineInfo: true})
	if err != nil {
		return "", tune.Locate(err, c)
	}
	return string(res.PTX), nil
}

func (r *checkReport) compare(p family.Problem, d family.Data, region family.Region) error {
	want, err := p.Expect(d, region)
	if err != nil {
		return err
	}
	report := regionReport{Output: region.Out, Lo: region.Lo, Hi: region.Hi}
	report.Error, report.Tolerance = nearest(d[region.Out].Region(region), want)
	if err := d[region.Out].Check(region, want); err != nil {
		report.Wrong = err.Error()
	}
	r.Regions = append(r.Regions, report)
	return nil
}

// nearest returns the error and the tolerance of the element that is nearest to
// its tolerance or furthest beyond it. What is not finite has no error to state.
func nearest(got []float64, e family.Expected) (worst, tolerance float64) {
	share := -1.0
	for i, x := range got[:min(len(got), len(e.Want))] {
		diff := math.Abs(x - e.Want[i])
		if math.IsNaN(diff) || math.IsInf(diff, 0) || e.Tol[i] <= 0 {
			continue
		}
		if s := diff / e.Tol[i]; s > share {
			share, worst, tolerance = s, diff, e.Tol[i]
		}
	}
	return worst, tolerance
}

// firstWrong says what the first wrong region or fault is; "" if all is right.
func (r *checkReport) firstWrong() string {
	for _, f := range r.Faults {
		return fmt.Sprintf("%s%s: %s", f.Class, place(f.Site), f.Message)
	}
	for _, g := range r.Regions {
		if g.Wrong != "" {
			return g.Wrong
		}
	}
	return ""
}

// checkRun is a problem on a device.
type checkRun struct {
	dev      bench.Device
	args     []family.Arg
	data     family.Data
	faults   []bench.Fault
	counters bench.Counters
	blocks   int64 // of all launches
	lines    []bench.LineCount
}

// byLine is a device that counts every launch by line.
type byLine struct{ bench.Device }

// Launch runs a kernel, and counts by line.
func (d byLine) Launch(ctx context.Context, m *bench.Module, kernel string, l bench.Launch) (*bench.Report, error) {
	l.Lines = true
	return d.Device.Launch(ctx, m, kernel, l)
}

// launch runs the parts' points, and reads the outputs back into the data.
func (v *checkRun) launch(ctx context.Context, c *codegen.Compiled, text string, parts []family.Part) error {
	plan, err := c.Plan(tune.Arguments(v.args))
	if err != nil {
		return usage(err)
	}
	plan.Rounds(tune.RoundsOfCheck)
	m, err := v.dev.Load(ctx, c.Program.Name+".ptx", []byte(text))
	if err != nil {
		return err
	}
	memory, err := v.allocate(plan)
	if err != nil {
		return err
	}
	for _, s := range plan.Steps {
		v.blocks += s.Grid
	}
	reports, err := bench.RunPlan(ctx, v.dev, m, plan, memory, points(parts))
	if err != nil {
		return err
	}
	for _, r := range reports {
		v.faults = append(v.faults, r.Faults...)
		v.counters.Add(&r.Counters)
		v.lines = append(v.lines, r.Lines...)
	}
	for i, a := range v.args {
		if !a.Out {
			continue
		}
		if err := v.dev.Read(memory[i], 0, v.data[a.Name].Bytes); err != nil {
			return err
		}
	}
	return nil
}

// allocate makes memory of the arguments and then of the workspace.
func (v *checkRun) allocate(plan *codegen.Plan) ([]bench.Buffer, error) {
	var memory []bench.Buffer
	for _, a := range v.args {
		if a.IsScalar() {
			memory = append(memory, bench.Buffer{})
			continue
		}
		data := v.data[a.Name].Bytes
		b, err := v.dev.Alloc(int64(len(data)), 0)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", a.Name, err)
		}
		if err := v.dev.Write(b, 0, data); err != nil {
			return nil, fmt.Errorf("argument %s: %w", a.Name, err)
		}
		memory = append(memory, b)
	}
	for _, n := range plan.Workspace {
		b, err := v.dev.Alloc(n, 0)
		if err != nil {
			return nil, fmt.Errorf("workspace: %w", err)
		}
		memory = append(memory, b)
	}
	return memory, nil
}

// points are the tiles of all parts, each once, by launch step.
func points(parts []family.Part) [][][]int {
	all := make([][][]int, len(parts[0].Tiles))
	for _, p := range parts {
		for step, tiles := range p.Tiles {
			for _, at := range tiles {
				if !slices.ContainsFunc(all[step], func(have []int) bool { return slices.Equal(have, at) }) {
					all[step] = append(all[step], at)
				}
			}
		}
	}
	return all
}

func (a *app) printCheck(r *checkReport) error {
	if a.json {
		return a.printJSON(r)
	}
	mark := a.paint("32", "right")
	if !r.OK {
		mark = a.paint("31", "wrong")
	}
	fmt.Fprintf(a.out, "%s in %s: %s (%s)\n%s, by %s on %s\n\n", mark, r.extent(), r.Kernel, r.Problem, r.Config, r.Via, r.Device)
	w := a.table()
	fmt.Fprintln(w, "OUTPUT\tFROM\tTO\tLARGEST ERROR\tOF TOLERANCE\tAGAINST THE REFERENCE")
	for _, g := range r.Regions {
		verdict := "right"
		if g.Wrong != "" {
			verdict = g.Wrong
		}
		fmt.Fprintf(w, "%s\t%v\t%v\t%.3g\t%.3g\t%s\n", g.Output, g.Lo, g.Hi, g.Error, g.Tolerance, verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.printFaults(r.Faults)
	if err := a.printCounters(r.Provenance, &r.Counters); err != nil {
		return err
	}
	return a.printLines(r.Lines)
}

// extent says how much of the problem was run.
func (r *checkReport) extent() string {
	if r.BlocksRun == r.Blocks {
		return fmt.Sprintf("all %d blocks", r.Blocks)
	}
	return fmt.Sprintf("the %d of %d blocks that were run", r.BlocksRun, r.Blocks)
}
