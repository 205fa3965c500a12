// Package cudac prints thread IR as CUDA C for people to read, profile and
// lift out: no includes, variables named as the lowering named them, loops as
// loops, and tensor-core and copy instructions in small named helpers declared
// in the source. Compile with Flags.
package cudac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// Flags are those of NVRTC and nvcc for the arithmetic that the thread IR says,
// where multiplications and additions are fused only on request.
func Flags() []string { return []string{"--fmad=false"} }

// Source is a printed module.
type Source struct {
	Text string
	// Lines tells where each line (from 0) comes from.
	Lines []Origin
}

// Origin is where a line of the source comes from: a kernel, and the note the
// lowering left; both are "" outside of kernels.
type Origin struct {
	Kernel, Note string
}

// Print prints a module. It refuses instructions the target does not have.
func Print(m *simt.Module) (*Source, error) {
	h := newHelpers()
	var kernels []*printer
	for _, k := range m.Kernels {
		if err := supported(m, k); err != nil {
			return nil, err
		}
		p := newPrinter(k, h)
		p.kernel()
		kernels = append(kernels, p)
	}
	var out writer
	out.line("// For %s.", m.Arch)
	out.line("typedef unsigned char u8;")
	out.line("typedef unsigned short u16;")
	out.line("typedef unsigned int u32;")
	out.line("typedef unsigned long long u64;")
	out.line("typedef long long i64;")
	if h.tensorMap {
		out.line("struct __align__(64) TensorMap { u8 bytes[128]; };")
	}
	if align := dynamicAlign(m); align > 0 {
		out.line("")
		out.line("extern __shared__ __align__(%d) u8 smem[];", align)
	}
	h.print(&out)
	for _, p := range kernels {
		out.line("")
		out.append(&p.writer)
	}
	return &Source{Text: out.text.String(), Lines: out.lines}, nil
}

func supported(m *simt.Module, k *simt.Kernel) (err error) {
	if k.Cluster > 1 && m.SM < 90 {
		return fmt.Errorf("kernel %s for %s: clusters need sm_90", k.Name, m.Arch)
	}
	simt.Walk(k.Body, func(in *simt.Instr) {
		if _, sm := in.Requires(); sm > m.SM && err == nil {
			err = fmt.Errorf("kernel %s for %s: %s needs sm_%d", k.Name, m.Arch, in.Opcode(), sm)
		}
		if arch := m.Lacks(in.Op); arch != "" && err == nil {
			err = fmt.Errorf("kernel %s for %s: %s needs %s", k.Name, m.Arch, in.Opcode(), arch)
		}
	})
	return err
}

// dynamicAlign is the alignment of shared memory sized at launch, 0 if there
// is none.
func dynamicAlign(m *simt.Module) int {
	align := 0
	for _, k := range m.Kernels {
		if k.Dynamic && k.Shared > 0 {
			align = max(align, k.SharedAlign, 16)
		}
	}
	return align
}

// writer collects lines.
type writer struct {
	text   strings.Builder
	lines  []Origin
	origin Origin
	depth  int
}

func (w *writer) line(format string, args ...any) {
	if format != "" {
		for range w.depth {
			w.text.WriteString("  ")
		}
	}
	if len(args) == 0 {
		w.text.WriteString(format)
	} else {
		fmt.Fprintf(&w.text, format, args...)
	}
	w.text.WriteByte('\n')
	w.lines = append(w.lines, w.origin)
}

func (w *writer) append(o *writer) {
	w.text.WriteString(o.text.String())
	w.lines = append(w.lines, o.lines...)
}

// printer prints one kernel.
type printer struct {
	writer
	k       *simt.Kernel
	h       *helpers
	regs    *simt.Registers
	inline  []bool  // by value ID: printed where it is used
	uses    []int32 // by value ID
	names   []string
	signed  []bool         // by register: the variable is an int
	array   []bool         // by register: an element of an array
	sizes   map[string]int // of arrays
	outside map[*simt.Instr][]int32
	home    []int // by register: the block that declares it
	known   []bool
	note    int32
	blocks  int // printed so far
	loops   int // around what is being printed
}

func newPrinter(k *simt.Kernel, h *helpers) *printer {
	p := &printer{k: k, h: h, regs: simt.AssignRegisters(k, simt.ForC)}
	p.signed = make([]bool, len(p.regs.First))
	p.array = make([]bool, len(p.regs.First))
	p.known = make([]bool, len(p.regs.First))
	p.chooseInline()
	p.place()
	p.name()
	return p
}

// kernel prints the whole kernel.
func (p *printer) kernel() {
	p.origin.Kernel = p.k.Name
	if p.k.Shared > 0 {
		p.line("// %d bytes of shared memory.", p.k.Shared)
	}
	bounds := fmt.Sprint(p.k.Threads)
	if p.k.MinBlocks > 0 {
		bounds = fmt.Sprintf("%d, %d", p.k.Threads, p.k.MinBlocks)
	}
	p.line("extern \"C\" __global__ void __launch_bounds__(%s)", bounds)
	if p.k.Cluster > 1 {
		p.line("__cluster_dims__(%d, 1, 1)", p.k.Cluster)
	}
	if p.k.MaxRegs > 0 {
		p.line("__maxnreg__(%d)", p.k.MaxRegs)
	}
	p.line("%s(%s) {", p.k.Name, p.params())
	p.depth++
	if p.k.Shared > 0 && !p.k.Dynamic && p.usesShared() {
		p.line("__shared__ __align__(%d) u8 smem[%d];", max(16, p.k.SharedAlign), p.k.Shared)
	}
	p.inputs()
	p.arrays()
	p.printBlock(p.k.Body)
	p.depth--
	p.line("}")
}

// usesShared tells whether the kernel looks at its shared memory.
func (p *printer) usesShared() bool {
	return slices.ContainsFunc(p.k.Inputs, func(v *simt.Value) bool { return v.Def.Op == simt.OpSharedBase && p.uses[v.ID] > 0 })
}

func (p *printer) params() string {
	var ps []string
	for i := range p.k.Params {
		ps = append(ps, p.param(&p.k.Params[i]))
	}
	return strings.Join(ps, ", ")
}

func (p *printer) param(a *simt.Param) string {
	switch {
	case a.Bytes > 0:
		p.h.tensorMap = true
		return "const __grid_constant__ TensorMap " + a.Name
	case a.Type == simt.Ptr:
		elem := "void"
		if a.Elem != simt.Void {
			elem = ctype(a.Elem)
		}
		if a.Const {
			elem = "const " + elem
		}
		return elem + " *__restrict__ " + a.Name
	case a.Type == simt.I32:
		return "int " + a.Name
	}
	return ctype(a.Type) + " " + a.Name
}

// ctype is the C type of a variable.
func ctype(t simt.Type) string {
	switch t {
	case simt.Pred:
		return "bool"
	case simt.I16, simt.F16, simt.BF16:
		return "u16"
	case simt.I32, simt.F16x2, simt.BF16x2:
		return "u32"
	case simt.I64, simt.Ptr:
		return "u64"
	case simt.F32:
		return "float"
	case simt.F64:
		return "double"
	}
	return "void"
}

// inputs declares what exists at entry.
func (p *printer) inputs() {
	for _, v := range p.k.Inputs {
		r := p.regs.Reg(v)
		if p.uses[v.ID] == 0 {
			continue
		}
		switch in := v.Def; in.Op {
		case simt.OpParam:
			a := &p.k.Params[in.Imm]
			switch {
			case a.Bytes > 0:
				p.line("const u64 %s = (u64)&%s;", p.names[r], a.Name)
			case a.Type == simt.Ptr:
				p.line("const u64 %s = (u64)%s;", p.names[r], a.Name)
			}
		case simt.OpSpecial:
			p.line("const u32 %s = %s;", p.names[r], p.special(in.Special))
		case simt.OpSharedBase:
			p.line("const u32 %s = (u32)__cvta_generic_to_shared(smem);", p.names[r])
		}
		p.known[r] = true
	}
}

func (p *printer) special(s simt.Special) string {
	switch s {
	case simt.TidX:
		return "threadIdx.x"
	case simt.CtaX:
		return "blockIdx.x"
	case simt.CtaY:
		return "blockIdx.y"
	case simt.CtaZ:
		return "blockIdx.z"
	case simt.NCtaX:
		return "gridDim.x"
	case simt.NCtaY:
		return "gridDim.y"
	case simt.NCtaZ:
		return "gridDim.z"
	}
	return p.h.special(s) + "()"
}
