package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/launchfile"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/codegen/cubin"
	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune"
)

// cubinReport is what kgen compile --json prints.
type cubinReport struct {
	Kernel   string          `json:"kernel"`
	GPU      string          `json:"gpu"`
	Problem  family.Settings `json:"problem"`
	Config   space.Config    `json:"config"`
	Via      string          `json:"via"`
	Compiler string          `json:"compiler"`
	Arch     string          `json:"arch"`
	Bytes    int             `json:"bytes"`
	Cubin    string          `json:"cubin,omitempty"` // absolute path, with -o
	Kernels  []resources     `json:"kernels"`

	// Provenance is of each kernel's ctas_per_sm, warps_per_sm and limited_by; the
	// rest is read from the cubin.
	Provenance bench.Provenance `json:"provenance"`
}

// resources are what one kernel of a cubin needs, and its residency by formula.
type resources struct {
	Name        string         `json:"name"`
	Threads     int            `json:"threads"`
	Registers   int            `json:"registers"`
	SharedBytes int            `json:"shared_bytes"` // static and dynamic
	StackBytes  int            `json:"stack_bytes"`
	SpillBytes  *int           `json:"spill_bytes"` // null: ptxas before CUDA 12.9 does not say
	CodeBytes   int            `json:"code_bytes"`
	CTAsPerSM   int            `json:"ctas_per_sm"`
	WarpsPerSM  int            `json:"warps_per_sm"`
	LimitedBy   target.Limiter `json:"limited_by"`
}

func (a *app) compileCommand() *cobra.Command {
	via := &choice{value: "nvrtc", words: []string{"nvrtc", "ptxas"}}
	var set []string
	var out compileFiles
	return a.familyCommand(familyVerb{
		name:  "compile",
		short: "Compile one configuration to a cubin and print its resources",
		long: `Compile one configuration to a cubin, by NVRTC from CUDA C or by ptxas from
PTX, and print what its kernels need: registers, shared memory, spills, and by
formula how many blocks an SM holds at once. Without --set the configuration is
the problem's default. What was compiled before comes from the cache.

--launch writes how a program launches the kernels for these sizes: grids, parameters,
tensor maps, memory. It names the cubin and the PTX that -o and --ptx write.`,
		example: `  kgen compile gemm --gpu a100
  kgen compile flashattn --gpu h100 --set BN=64 --via ptxas -o attention.cubin --json
  kgen compile gemm --gpu h100 -o gemm.cubin --ptx gemm.ptx --launch gemm.json`,
		flags: func(c *cobra.Command) {
			settingFlag(c, &set)
			choiceFlag(c, via, "via", "what compiles: NVRTC from CUDA C, or ptxas from PTX")
			c.Flags().StringVarP(&out.cubin, "output", "o", "", "write the cubin to `FILE`, whole or not at all")
			c.Flags().StringVar(&out.ptx, "ptx", "", "write the PTX of the same kernels to `FILE`")
			launchFlag(c, &out.launch)
			a.jsonFlag(c)
		},
		run: func(ctx context.Context, j *job) error {
			if err := out.check(); err != nil {
				return err
			}
			r, b, err := a.compile(ctx, j, set, via.value)
			if err != nil {
				return err
			}
			if err := out.write(r, b); err != nil {
				return err
			}
			return a.printCubin(r)
		},
	})
}

// compileFiles are the files that kgen compile writes, each if it is named.
type compileFiles struct {
	cubin, ptx, launch string
}

func (f *compileFiles) check() error {
	switch {
	case f.cubin == "-":
		return usagef("-o -: standard output is for the resources: want a file")
	case f.ptx == "-":
		return usagef("--ptx -: standard output is for the resources: want a file, or kgen emit --stage ptx")
	case f.ptx != "" && f.ptx == f.cubin:
		return usagef("--ptx %s: that is -o: want another file", f.ptx)
	case f.ptx != "" && f.ptx == f.launch:
		return usagef("--launch %s: that is --ptx: want another file", f.launch)
	}
	if err := checkOutput("-o", f.cubin); err != nil {
		return err
	}
	if err := checkOutput("--ptx", f.ptx); err != nil {
		return err
	}
	return checkLaunch(f.launch, f.cubin)
}

// write writes them, and where the cubin is into the report.
func (f *compileFiles) write(r *cubinReport, b *built) (err error) {
	if f.cubin != "" {
		if err := writeFile("-o", f.cubin, b.cubin); err != nil {
			return err
		}
		if r.Cubin, err = filepath.Abs(f.cubin); err != nil {
			return err
		}
	}
	if f.launch != "" {
		files := &b.launch.Files
		if files.Cubin, err = beside(f.cubin, f.launch); err != nil {
			return err
		}
		if files.PTX, err = beside(f.ptx, f.launch); err != nil {
			return err
		}
	}
	if f.ptx != "" {
		text, err := b.program.PTX()
		if err != nil {
			return compileError(err)
		}
		if f.launch != "" {
			text = b.launch.Comment(filepath.Base(f.launch)) + "\n" + text
		}
		if err := writeFile("--ptx", f.ptx, []byte(text)); err != nil {
			return err
		}
	}
	if f.launch == "" {
		return nil
	}
	return writeLaunch(f.launch, b.launch)
}

// built is a configuration's program, compiled, with how to launch it.
type built struct {
	program *codegen.Compiled
	cubin   []byte
	launch  *launchfile.File
}

// compile makes the configuration's cubin, with what it takes and how to launch it.
func (a *app) compile(ctx context.Context, j *job, set []string, via string) (*cubinReport, *built, error) {
	config, err := j.config(set)
	if err != nil {
		return nil, nil, err
	}
	c, plan, err := j.lower(config, codegen.Options{Verify: true})
	if err != nil {
		return nil, nil, err
	}
	r := &cubinReport{
		Kernel: j.family.Name, GPU: j.gpu.ID, Problem: j.problem.Settings(), Config: config, Via: via, Arch: c.Module.Arch,
		Provenance: bench.Formula,
	}
	build := a.viaNVRTC
	if via == "ptxas" {
		build = a.viaPtxas
	}
	image, err := build(ctx, c, r)
	if err != nil {
		return nil, nil, err
	}
	r.Bytes = len(image)
	if r.Kernels, err = kernelResources(c, j.gpu, image); err != nil {
		return nil, nil, err
	}
	d, err := j.describe(config, c, plan)
	if err != nil {
		return nil, nil, err
	}
	d.Compiler = r.Compiler
	return r, &built{c, image, d}, nil
}

// openCache is the cache of compiled kernels, or none where it cannot be used.
func (a *app) openCache() *cache.Cache {
	c, err := cache.Open("")
	if err != nil {
		a.log.Warn("going on without a cache: " + oneLine(err))
	}
	return c
}

// cached is the cache's entry of a key or else what make makes.
func (a *app) cached(key cache.Key, make func() ([]byte, error)) ([]byte, error) {
	c := a.openCache()
	if image, ok := c.Get(key); ok {
		return image, nil
	}
	image, err := make()
	if err != nil {
		return nil, err
	}
	if err := c.Put(key, image); err != nil {
		a.log.Warn("not cached: " + oneLine(err))
	}
	return image, nil
}

func (a *app) viaNVRTC(ctx context.Context, p *codegen.Compiled, r *cubinReport) ([]byte, error) {
	text, err := p.CUDA()
	if err != nil {
		return nil, compileError(err)
	}
	compiler, err := nvrtc.Find()
	if err != nil {
		return nil, noCompiler(err)
	}
	major, minor := compiler.Version()
	r.Compiler = fmt.Sprintf("NVRTC %d.%d", major, minor)
	key := cache.KeyOf(r.Compiler, p.Module.Arch, strings.Join(cudac.Flags(), " "), text)
	return a.cached(key, func() ([]byte, error) {
		res, err := compiler.Compile(ctx, nvrtc.Source{Name: r.Kernel + ".cu", Text: text}, nvrtc.Options{Arch: p.Module.Arch, Flags: cudac.Flags()})
		if err != nil {
			return nil, tune.Locate(err, p)
		}
		return res.Cubin, nil
	})
}

func (a *app) viaPtxas(ctx context.Context, p *codegen.Compiled, r *cubinReport) ([]byte, error) {
	text, err := p.PTX()
	if err != nil {
		return nil, compileError(err)
	}
	ptxas, err := nvrtc.FindPtxas()
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, nvrtc.Remedy(err))
	}
	version, err := ptxas.Version(ctx)
	if err != nil {
		return nil, err
	}
	r.Compiler = "ptxas " + version
	key := cache.KeyOf(r.Compiler, p.Module.Arch, text)
	return a.cached(key, func() ([]byte, error) {
		res, err := ptxas.Assemble(ctx, []byte(text), p.Module.Arch)
		if err != nil {
			return nil, err
		}
		return res.Cubin, nil
	})
}

// noCompiler says what to do without NVRTC.
func noCompiler(err error) error {
	if _, missing := nvrtc.FindPtxas(); missing != nil {
		return fmt.Errorf("%w; %w; %s", err, missing, nvrtc.Remedy(err))
	}
	return fmt.Errorf("%w; --via ptxas does without NVRTC", err)
}

// kernelResources reads the cubin of a program, in the order of its kernels.
func kernelResources(c *codegen.Compiled, gpu *target.GPU, image []byte) ([]resources, error) {
	f, err := cubin.Parse(image)
	if err != nil {
		return nil, err
	}
	var all []resources
	for _, k := range c.Kernels {
		built := f.Kernel(k.Name)
		if built == nil {
			return nil, fmt.Errorf("the cubin has no kernel %s", k.Name)
		}
		r := resources{
			Name: k.Name, Threads: k.Threads, Registers: built.Registers, SharedBytes: built.SharedBytes + k.SharedBytes,
			StackBytes: built.StackBytes, CodeBytes: built.CodeBytes,
		}
		if built.SpillsKnown {
			spills := built.SpillStoreBytes + built.SpillLoadBytes
			r.SpillBytes = &spills
		}
		o, err := gpu.Occupancy(target.Usage{Registers: r.Registers, Shared: r.SharedBytes, Threads: r.Threads, Barriers: built.Barriers})
		if err != nil {
			return nil, err
		}
		r.CTAsPerSM, r.WarpsPerSM, r.LimitedBy = o.CTAs, o.Warps, o.Limiter
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, errors.New("the program has no kernels")
	}
	return all, nil
}

func (a *app) printCubin(r *cubinReport) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s (%s) for %s\n%s, by %s for %s: %d bytes\n\n", r.Kernel, r.Problem, r.GPU, r.Config, r.Compiler, r.Arch, r.Bytes)
	w := a.table()
	fmt.Fprintln(w, "KERNEL\tTHREADS\tREGISTERS\tSHARED B\tSPILLS B\tCODE B\tCTAS/SM\tWARPS/SM\tLIMITED BY")
	for _, k := range r.Kernels {
		spills := "?"
		if k.SpillBytes != nil {
			spills = strconv.Itoa(*k.SpillBytes)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%d\t%d\t%d\t%s\n", k.Name, k.Threads, k.Registers, k.SharedBytes, spills, k.CodeBytes, k.CTAsPerSM, k.WarpsPerSM, k.LimitedBy)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\nCTAS/SM, WARPS/SM and LIMITED BY are by %s; REGISTERS to CODE are read from the cubin (SHARED with what the launch adds).\n", r.Provenance)
	if r.Cubin != "" {
		fmt.Fprintf(a.out, "\ncubin  %s\n", r.Cubin)
	}
	return nil
}
