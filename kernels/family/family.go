// Package family says what a kernel family is: its flags, and for a problem (a choice
// of sizes and types) the tile program, the search space, the work by formula, the
// arguments with their random inputs, and a float64 reference with its tolerance.
//
// A family is one folder beside this one and one line in package kernels.
package family

import (
	"fmt"
	"math/rand/v2"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Family is a kind of kernel.
type Family struct {
	Name  string // as on the command line: "gemm"
	Doc   string // one line
	Flags []Flag

	// Prefix begins the names of the family's types and functions in generated packages:
	// "FlashAttn". Sizes are the fields of its shapes there, one for each symbol of its
	// programs' views.
	Prefix string
	Sizes  []Extent
	// Ratios are pairs of sizes whose quotient programs fix: heads of queries and of keys.
	Ratios [][2]string
	// With are families whose kernels go with this one's in generated packages.
	With []string
	// Others are changes of the flags whose programs serve sizes that those of the flags
	// as they are do not, such as unaligned ones: faster programs first.
	Others []map[string]string

	// New makes the problem that checked flags describe. It checks what no flag can
	// alone, such as heads against kv-heads.
	New func(Values) (Problem, error)

	// Awkward draws a small problem whose sizes meet as many edges as they can: not
	// multiples of anything, smaller than a tile, padded rows, empty loops.
	Awkward func(*rand.Rand) Problem
}

// Extent is a size of the family's problems as callers of generated code see it.
type Extent struct {
	Symbol     string // in the programs: "Sk"
	Field      string // in Go: "SeqKV"
	Doc        string
	MultipleOf string // another field that it must be a multiple of, one listed before it; "" for none
	Max        int64  // the largest; 0: MaxSize
}

// Problem is an instance of a family: sizes, types and options, all checked.
type Problem interface {
	// Settings lists what makes the problem, in the order of the family's flags. Equal
	// problems have equal settings.
	Settings() Settings

	// Work returns what must be done, by formula.
	Work() Work

	// Space returns the configurations to search on a GPU.
	Space(*target.GPU) (*space.Bound, error)

	// Default returns the configuration to use untuned. It is one of Space's.
	Default(*target.GPU) (space.Config, error)

	// Program builds the tile program. It depends on the problem's types, options and
	// alignment and on the configuration, not on the sizes, which are run-time
	// arguments. The configuration's values must be ones that the space's parameters
	// allow.
	Program(space.Config) (*ir.Program, error)

	// Args lists the program's arguments, in the order of its parameters.
	Args() []Arg

	// Parts draws n pieces of a run that can be checked alone, different ones where
	// there are as many, from the corners of the tile space first.
	Parts(c space.Config, r *rand.Rand, n int) ([]Part, error)

	// Expect computes a region of an output in float64 by plain loops.
	Expect(d Data, r Region) (Expected, error)
}

// Work is what a problem must do on any machine: formulas, not counts.
type Work struct {
	Math  target.Math // the arithmetic of FLOPs
	FLOPs float64     // an FMA is 2
	Bytes float64     // global memory: every input read once, every output written once
	Exp2  float64     // exponentials
}

// Arg is an argument of a program: a tensor, or a scalar where Dims is nil.
type Arg struct {
	Name    string // of the program's parameter
	Elem    ir.Elem
	Dims    []int
	Strides []int // in elements
	Out     bool  // written, not read
	Partial bool  // of an output: some elements are left as they were, where NaN is expected

	// Fill changes a tensor's random input after it was drawn; nil leaves it.
	Fill func(*Tensor)

	// Integer, of a tensor of 32-bit integers without gaps, is its elements, in row-major
	// order, instead of random ones: they decide what the program does.
	Integer func(i int) int64

	// Most, of a tensor of numbers from 0 up that programs count with, is the largest that
	// one may be, over the sizes of the program's views; nil: it is no such tensor.
	Most *ir.Expr

	Int    int64   // value of an integer scalar
	Float  float64 // value of a floating-point scalar
	Doc    string  // of a scalar: what it is
	From0  bool    // of a scalar: it means nothing below 0
	Unread bool    // of a scalar: the problem's options leave it out of the program

	// Dropout, of the scalars that a probability of dropout decides, is that: an integer is
	// the threshold of num.DropoutThreshold, and a float the factor of num.DropoutScale.
	Dropout float64
}

// IsScalar reports whether the argument is a scalar.
func (a Arg) IsScalar() bool { return a.Dims == nil }

// Elements returns how many elements the argument's memory spans, gaps included; 0 if
// any dimension is.
func (a Arg) Elements() int {
	last := 0
	for i, n := range a.Dims {
		if n == 0 {
			return 0
		}
		last += (n - 1) * a.Strides[i]
	}
	return last + 1
}

// Part is a piece of a run: for each launch step of the program, in order, the points
// of its tile space to run (one coordinate for each axis), and the regions of outputs
// that are complete once they have.
type Part struct {
	Tiles   [][][]int
	Regions []Region
}

// Region is a box of an output: Lo[i] <= coordinate i < Hi[i].
type Region struct {
	Out    string // name of the argument
	Lo, Hi []int
}

// Expected is a region's values in row-major order, and how far each may be off.
// Where Want is infinite it is exact, and where it is NaN so must the output be, which
// holds NaN before a run. Where Tol is infinite anything is right.
type Expected struct {
	Want, Tol []float64
}

// Problem makes the problem that flags describe, given as text by name; flags not
// given take their defaults. gpu may be nil: with one, what it cannot do (its
// arithmetic, its memory) is refused, and a default it cannot do is replaced.
func (f *Family) Problem(flags map[string]string, gpu *target.GPU) (Problem, error) {
	p, err := f.AnySize(flags, gpu)
	if err != nil {
		return nil, err
	}
	if gpu != nil {
		if err := fits(p, gpu); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// AnySize is [Family.Problem] for whoever wants programs alone, which take their sizes
// when they run: the GPU's memory does not matter.
func (f *Family) AnySize(flags map[string]string, gpu *target.GPU) (Problem, error) {
	v, err := f.parse(flags, gpu)
	if err != nil {
		return nil, err
	}
	return f.New(v)
}

// fits refuses a problem whose arguments exceed the GPU's memory.
func fits(p Problem, gpu *target.GPU) error {
	total := Bytes(p.Args())
	if limit := gpu.MemoryGB * 1e9; limit > 0 && total > limit {
		return fmt.Errorf("problem of %.4g GB: %s has %.4g GB of memory, want smaller sizes", total/1e9, gpu.Name, gpu.MemoryGB)
	}
	return nil
}

// Bytes is how many bytes the elements of all tensors have, gaps left out.
func Bytes(args []Arg) float64 {
	var total float64
	for _, a := range args {
		if a.IsScalar() {
			continue
		}
		bytes := float64(a.Elem.MemoryBits()) / 8
		for _, n := range a.Dims {
			bytes *= float64(n)
		}
		total += bytes
	}
	return total
}

// Env returns the names that every family's constraints may use:
//
//	sm          compute capability as a number: 80, 90, 120
//	sm_count    number of SMs
//	shared      bytes of shared memory a block may have
//	registers   registers of an SM
//	max_warps   resident warps of an SM
//	threads     threads a block may have
func Env(gpu *target.GPU) space.Env {
	l := gpu.Limits()
	return space.Env{
		"sm":        int64(gpu.CC.SM()),
		"sm_count":  int64(gpu.SMs),
		"shared":    int64(l.SharedPerBlock),
		"registers": int64(l.RegistersPerSM),
		"max_warps": int64(l.WarpsPerSM),
		"threads":   int64(l.ThreadsPerBlock),
	}
}

// Draw picks one of a space's configurations.
func Draw(r *rand.Rand, b *space.Bound) (space.Config, error) {
	n := b.Count()
	if n.Valid == 0 {
		return space.Config{}, fmt.Errorf("no configuration: %s", n)
	}
	at := r.Int64N(n.Valid)
	for c := range b.All() {
		if at == 0 {
			return c, nil
		}
		at--
	}
	panic("unreachable: a space has as many configurations as it counts")
}
