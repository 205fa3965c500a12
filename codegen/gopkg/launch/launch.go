// Package launch is the part that all generated packages share: package gopkg copies
// this file. It chooses nothing and calls no driver: a plan is data, and a Launcher is
// whatever binding the program has.
package launch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Device is what choosing a kernel must know of a GPU. Any binding of the driver can
// fill it in.
type Device struct {
	Name         string // as the driver's cuDeviceGetName gives it; "": not known
	Major, Minor int    // compute capability
	Driver       int    // CUDA version of the driver as cuDriverGetVersion gives it, 12040 for 12.4; 0: not known
	SharedOptin  int    // bytes of shared memory that a block may opt in to; 0: the least of the compute capability

	// TensorMaps says that tensor maps can be encoded, by the driver's
	// cuTensorMapEncodeTiled. Without it no plan has any to encode; kernels that make their
	// own, where the package has some, need no encoder.
	TensorMaps bool
}

// ErrUnsupported is in the errors of plans that no kernel of the package serves on the
// device. It is not in those of shapes that are wrong on all devices.
var ErrUnsupported = errors.New("not supported")

// Plan is what to launch for a shape, in order.
type Plan struct {
	Kernel     string // which of the package's kernels
	Config     string // its configuration, as "BM=128 BN=64"
	Provenance string // where the configuration is from, and the GPU that it was chosen for: "default for NVIDIA A100 SXM4 80GB", or predicted, or measured
	Steps      []Step
	Workspace  []int64 // bytes of each workspace buffer, which wants 256-byte alignment
	Clear      []int   // the workspace buffers to set to zero before every run

	family string // what its function and its arguments are named for: PlanGemm, GemmArgs
	values int    // how many arguments these are
}

// Step is one launch.
type Step struct {
	Image                []byte // PTX with its final NUL
	Entry                string
	Grid, Block, Cluster [3]uint32 // Cluster is zero for none
	Shared               uint32    // dynamic; above 48 KiB the function's limit must be raised first
	Early                bool      // may start while the step before runs: see EarlyLauncher
	Offsets, Sizes       []int     // of the parameters in what Pack gives, in bytes
	TensorMaps           []TensorMap

	params   []byte
	pointers []pointer
}

// TensorMap is a parameter of 128 bytes that describes a tensor to the bulk tensor
// copies: the arguments of the driver's cuTensorMapEncodeTiled. All element strides are
// 1, there is no interleaving, and what lies outside reads as zeros.
type TensorMap struct {
	Offset   int      // in what Pack gives, whose first 8 bytes there are the tensor's address
	DataType uint32   // CUtensorMapDataType
	Dims     []uint64 // elements, innermost first
	Strides  []uint64 // bytes, of all dimensions but the innermost
	Box      []uint32 // elements that a copy moves of each dimension
	Swizzle  uint32   // CUtensorMapSwizzle
}

// pointer is a parameter that only the launch knows.
type pointer struct {
	offset int
	value  int // of the arguments, or that plus the workspace's buffers
	bytes  int
	align  uint64 // of an address; 0 for a number
	name   string
}

// Pack lays out a step's parameters. values are the arguments' addresses and bits in
// order, workspace the addresses of the plan's workspace buffers. Eight spare bytes
// follow the parameters, for bindings that read eight bytes of each. Where the step has
// tensor maps, their addresses are to be replaced by the maps. That numbers are in their
// range only a family's arguments know.
func (p *Plan) Pack(step int, values, workspace []uint64) ([]byte, error) {
	switch {
	case p == nil || p.family == "":
		return nil, errors.New("no plan: want one of a function Plan...")
	case step < 0 || step >= len(p.Steps):
		return nil, fmt.Errorf("step %d: want 0 to %d", step, len(p.Steps)-1)
	case len(values) != p.values:
		return nil, fmt.Errorf("%d values: want %d", len(values), p.values)
	case len(workspace) != len(p.Workspace):
		return nil, fmt.Errorf("%d workspace buffers: want %d", len(workspace), len(p.Workspace))
	}
	s := &p.Steps[step]
	b := make([]byte, len(s.params)+8)
	copy(b, s.params)
	for _, q := range s.pointers {
		var v uint64
		if q.value < len(values) {
			v = values[q.value]
		} else {
			v = workspace[q.value-len(values)]
		}
		if q.align > 0 && v == 0 {
			return nil, fmt.Errorf("%s: address 0: want one on the device", q.name)
		}
		if q.align > 0 && v%q.align != 0 {
			return nil, fmt.Errorf("%s at %#x: want an address that is a multiple of %d", q.name, v, q.align)
		}
		if q.bytes == 4 {
			binary.LittleEndian.PutUint32(b[q.offset:], uint32(v))
		} else {
			binary.LittleEndian.PutUint64(b[q.offset:], v)
		}
	}
	return b, nil
}

// Launcher is what running a plan takes of a binding. Load gives a function of an image
// that may take shared bytes of dynamic shared memory; it may be asked for the same
// image more than once. Parameter i of a launch is at params[offsets[i]]. The context
// and the thread it is bound to are the caller's business.
type Launcher interface {
	Load(image []byte, entry string, shared uint32) (function uintptr, err error)
	Launch(function uintptr, grid, block, cluster [3]uint32, shared uint32, stream uintptr, params []byte, offsets []int) error
}

// Encoder is a Launcher that can encode tensor maps, which is what Device.TensorMaps
// says.
type Encoder interface {
	Launcher
	EncodeTensorMap(m *TensorMap, address uint64) ([128]byte, error)
}

// EarlyLauncher is a Launcher that can let a kernel start while the one before it on the
// stream still runs, which hides the time of a launch. LaunchEarly is Launch with the
// attribute CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION of 1 for the driver's
// cuLaunchKernelEx, beside that of the cluster if there is one. Nothing else is to be done:
// the kernel itself waits for all that came before it on the stream, and only then touches
// memory. It is for Steps that are Early alone; with Launch they are as right, and later.
type EarlyLauncher interface {
	Launcher
	LaunchEarly(function uintptr, grid, block, cluster [3]uint32, shared uint32, stream uintptr, params []byte, offsets []int) error
}

// Args are a family's arguments.
type Args interface {
	family() string
	values() ([]uint64, error)
}

// of gives a family's arguments as the plan takes them, if it is of that family.
func (p *Plan) of(a Args) ([]uint64, error) {
	switch {
	case p != nil && a == nil:
		return nil, fmt.Errorf("arguments nil: want %sArgs", p.family)
	case a == nil:
		return nil, errors.New("no plan and no arguments: want both")
	case p == nil || p.family == "":
		return nil, fmt.Errorf("no plan: want a plan of Plan%s", a.family())
	case p.family != a.family():
		return nil, fmt.Errorf("plan %s takes %sArgs: want a plan of Plan%s", p.Kernel, p.family, a.family())
	}
	return a.values()
}

// pack lays out a step's parameters from a family's arguments.
func (p *Plan) pack(step int, a Args, workspace []uint64) ([]byte, error) {
	values, err := p.of(a)
	if err != nil {
		return nil, err
	}
	return p.Pack(step, values, workspace)
}

// packAll lays out the parameters of all steps.
func (p *Plan) packAll(a Args, workspace []uint64) ([][]byte, error) {
	values, err := p.of(a)
	if err != nil {
		return nil, err
	}
	params := make([][]byte, len(p.Steps))
	for i := range params {
		if params[i], err = p.Pack(i, values, workspace); err != nil {
			return nil, err
		}
	}
	return params, nil
}

// Run launches the plan's steps one after the other on a stream, none if any argument is
// refused. The buffers that Clear names are the caller's to clear.
func (p *Plan) Run(l Launcher, a Args, workspace []uint64, stream uintptr) error {
	if l == nil {
		return errors.New("launcher nil: want a binding of the driver")
	}
	all, err := p.packAll(a, workspace)
	if err != nil {
		return err
	}
	for i, params := range all {
		s := &p.Steps[i]
		if s.Grid[0] == 0 {
			continue
		}
		if err := s.encode(l, params); err != nil {
			return fmt.Errorf("%s: %w", s.Entry, err)
		}
		f, err := l.Load(s.Image, s.Entry, s.Shared)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Entry, err)
		}
		launch := l.Launch
		if e, ok := l.(EarlyLauncher); ok && s.Early {
			launch = e.LaunchEarly
		}
		if err := launch(f, s.Grid, s.Block, s.Cluster, s.Shared, stream, params, s.Offsets); err != nil {
			return fmt.Errorf("%s: %w", s.Entry, err)
		}
	}
	return nil
}

// encode puts a step's tensor maps in the place of their addresses.
func (s *Step) encode(l Launcher, params []byte) error {
	if len(s.TensorMaps) == 0 {
		return nil
	}
	e, ok := l.(Encoder)
	if !ok {
		return fmt.Errorf("%w: %d tensor maps: want a Launcher that is an Encoder, or a plan for a Device without TensorMaps", ErrUnsupported, len(s.TensorMaps))
	}
	for i := range s.TensorMaps {
		m := &s.TensorMaps[i]
		b, err := e.EncodeTensorMap(m, binary.LittleEndian.Uint64(params[m.Offset:]))
		if err != nil {
			return fmt.Errorf("tensor map %d: %w", i, err)
		}
		copy(params[m.Offset:], b[:])
	}
	return nil
}

// variant is one kernel of a family: what it needs of a device, and its plan for a
// shape.
type variant[S any] struct {
	name         string
	gpus         []string // keys of the names of the device it was made for
	major, minor int      // least compute capability
	only         bool     // no newer one runs it
	maps         bool     // it has tensor maps
	driver       int      // least CUDA version of a driver that reads the image
	shared       int      // bytes of shared memory of a block
	plan         func(S) (*Plan, error)

	rule func(S) int // if not nil, which of the variants it chooses among a shape is for
	leaf int         // by rule, this one
}

// choose plans with the first variant that serves device and shape, those made for the
// device first, and those that a rule chooses for other shapes last. Where none does, the
// error is that of the one which suits the device best, and of others that suit it as
// well, where they refuse for another reason: what keeps one from serving need not keep
// the next.
func choose[S any](d Device, s S, variants []variant[S]) (*Plan, error) {
	var why []string
	var reasons []string
	var best []int
	for _, v := range inOrder(d, s, variants) {
		runs := v.runs(d)
		err := runs
		if err == nil {
			var p *Plan
			if p, err = v.plan(s); err == nil {
				return p, nil
			}
		}
		suits := v.suits(d, runs == nil)
		order := 1
		if best != nil {
			order = slices.Compare(suits, best)
		}
		if order > 0 {
			best, why, reasons = suits, nil, nil
		}
		if reason := err.Error(); order >= 0 && !slices.Contains(reasons, reason) {
			why, reasons = append(why, v.name+": "+reason), append(reasons, reason)
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupported, strings.Join(why, "; "))
}

// inOrder is the order in which variants are tried.
func inOrder[S any](d Device, s S, variants []variant[S]) []*variant[S] {
	var sorted []*variant[S]
	for _, chosen := range []bool{true, false} {
		for _, ours := range []bool{true, false} {
			for i := range variants {
				v := &variants[i]
				if chosen == (v.rule == nil || v.rule(s) == v.leaf) && ours == v.isFor(d) {
					sorted = append(sorted, v)
				}
			}
		}
	}
	return sorted
}

// isFor tells whether the variant was made for the device.
func (v *variant[S]) isFor(d Device) bool { return slices.Contains(v.gpus, key(d.Name)) }

// suits says how well the variant suits the device, the most telling first.
func (v *variant[S]) suits(d Device, runs bool) []int {
	apart := 10*(d.Major-v.major) + d.Minor - v.minor
	return []int{oneIf(v.isFor(d)), oneIf(apart == 0), oneIf(runs), -max(apart, -apart)}
}

func oneIf(so bool) int {
	if so {
		return 1
	}
	return 0
}

// key is what tells a device's name from others: its letters and digits, less what drivers
// and tables write differently.
func key(name string) string {
	name = strings.ToLower(name[:min(len(name), 64)]) // no device's name is longer
	for _, word := range []string{"nvidia", "geforce", "tesla"} {
		name = strings.ReplaceAll(name, word, "")
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
}

func (v *variant[S]) runs(d Device) error {
	switch {
	case d.Major < v.major || d.Major == v.major && d.Minor < v.minor:
		return fmt.Errorf("compute capability %d.%d: want %d.%d or newer", d.Major, d.Minor, v.major, v.minor)
	case v.only && (d.Major != v.major || d.Minor != v.minor):
		return fmt.Errorf("compute capability %d.%d: want %d.%d alone", d.Major, d.Minor, v.major, v.minor)
	case v.maps && !d.TensorMaps:
		return errors.New("tensor maps: the device has no way to encode them")
	case d.Driver > 0 && d.Driver < v.driver:
		return fmt.Errorf("a driver for CUDA %d.%d: want one for %d.%d or newer", d.Driver/1000, d.Driver%1000/10, v.driver/1000, v.driver%1000/10)
	case d.shared() < v.shared:
		return fmt.Errorf("%d bytes of shared memory for a block: want %d", d.shared(), v.shared)
	}
	return nil
}

// shared is how many bytes of shared memory a block may have: as the device says, or
// else what the CUDA programming guide gives for the compute capability, and of those
// that it does not know the least of any from 8.0 on.
func (d Device) shared() int {
	switch {
	case d.SharedOptin > 0:
		return d.SharedOptin
	case d.Major < 8:
		return 64 << 10
	case d.Major == 8 && (d.Minor == 0 || d.Minor == 7):
		return 163 << 10
	case d.Major >= 9 && d.Major <= 11:
		return 227 << 10
	}
	return 99 << 10
}

// refusal is what is wrong: of several, the first.
type refusal struct{ err error }

func (r *refusal) refuse(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// planner collects what is wrong with a shape.
type planner struct {
	refusal
	plan Plan
}

// newPlanner begins a plan for a family whose arguments are so many.
func newPlanner(family string, values int) *planner {
	return &planner{plan: Plan{family: family, values: values}}
}

// size holds a size of the shape to what kernels take.
func (p *planner) size(name string, n int, most int64) int64 {
	if n < 1 || int64(n) > most {
		p.refuse("%s %d: want 1 to %d", name, n, most)
		return 1 // so that nothing that follows divides by zero
	}
	return int64(n)
}

// dense holds a tensor's sizes to what 64-bit addresses count.
func (p *planner) dense(name string, bytes int64, dims ...int64) {
	for _, n := range dims {
		if n > 0 && bytes > math.MaxInt64/16/n {
			p.refuse("%s of %v elements: more bytes than 64 bits count", name, dims)
			return
		}
		bytes *= max(n, 1)
	}
}

// multiple holds a size or stride to a factor.
func (p *planner) multiple(what string, n, of int64) {
	if n%of != 0 {
		p.refuse("%s of %d: want a multiple of %d", what, n, of)
	}
}

// within holds a number to a range.
func (p *planner) within(what string, n, lo, hi int64) {
	if n < lo || n > hi {
		p.refuse("%s of %d: want %d to %d", what, n, lo, hi)
	}
}

// below holds a sum over sizes to what 32-bit indices have room for.
func (p *planner) below(what string, n int64) {
	if n > math.MaxInt32 {
		p.refuse("sizes too large for indices of 32 bits: %s is %d, want at most %d", what, n, math.MaxInt32)
	}
}

// workspace adds a buffer.
func (p *planner) workspace(bytes int64, zero bool) {
	if zero {
		p.plan.Clear = append(p.plan.Clear, len(p.plan.Workspace))
	}
	p.plan.Workspace = append(p.plan.Workspace, bytes)
}

// step adds a launch over a tile space.
func (p *planner) step(image []byte, entry string, threads, shared uint32, counts ...int64) {
	grid := int64(1)
	for _, n := range counts {
		if n > 0 && grid > math.MaxInt32/n {
			p.refuse("%s over %v tiles: want at most %d", entry, counts, math.MaxInt32)
			n = 0
		}
		grid *= max(n, 0)
	}
	p.plan.Steps = append(p.plan.Steps, Step{
		Image: image, Entry: entry, Grid: [3]uint32{uint32(grid), 1, 1}, Block: [3]uint32{threads, 1, 1}, Shared: shared,
	})
}

// cluster puts blocks of the last step into clusters.
func (p *planner) cluster(blocks uint32) {
	p.plan.Steps[len(p.plan.Steps)-1].Cluster = [3]uint32{blocks, 1, 1}
}

// early lets the last step start while the one before it runs, for which its kernel waits.
func (p *planner) early() {
	p.plan.Steps[len(p.plan.Steps)-1].Early = true
}

// wave gives the last step a grid of at most so many blocks, which go on from tile to tile
// and count past the last by up to twice as many.
func (p *planner) wave(most uint32) {
	s := &p.plan.Steps[len(p.plan.Steps)-1]
	if s.Grid[0] > math.MaxInt32-2*most {
		p.refuse("%s over %d tiles: want at most %d", s.Entry, s.Grid[0], math.MaxInt32-2*most)
	}
	s.Grid[0] = min(s.Grid[0], most)
}

// param makes room for a parameter of the last step; one of 128 bytes is aligned to 64.
func (p *planner) param(bytes int) *Step {
	s := &p.plan.Steps[len(p.plan.Steps)-1]
	for len(s.params)%min(bytes, 64) != 0 {
		s.params = append(s.params, 0)
	}
	s.Offsets = append(s.Offsets, len(s.params))
	s.Sizes = append(s.Sizes, bytes)
	s.params = append(s.params, make([]byte, bytes)...)
	return s
}

// known adds a parameter whose value the shape gives.
func (p *planner) known(bytes int, v int64) {
	s := p.param(bytes)
	at := s.params[len(s.params)-bytes:]
	if bytes == 4 {
		binary.LittleEndian.PutUint32(at, uint32(v))
	} else {
		binary.LittleEndian.PutUint64(at, uint64(v))
	}
}

// passed adds a parameter that the launch gives: an address, or without an alignment a
// number.
func (p *planner) passed(bytes, value int, align uint64, name string) {
	s := p.param(bytes)
	s.pointers = append(s.pointers, pointer{offset: len(s.params) - bytes, value: value, bytes: bytes, align: align, name: name})
}

// tensorMap adds a parameter that is an argument's tensor map. What a dimension of one
// element has for a stride does not matter to a copy, but must be one that the driver
// takes.
func (p *planner) tensorMap(value int, align uint64, name string, m TensorMap) {
	s := p.param(128)
	m.Offset = len(s.params) - 128
	s.pointers = append(s.pointers, pointer{offset: m.Offset, value: value, bytes: 8, align: align, name: name})
	for i, n := range m.Dims[1:] {
		if n == 1 {
			m.Strides[i] = 16
		}
		if m.Strides[i] >= 1<<40 {
			p.refuse("%s: a stride of %d bytes: tensor maps have strides below 2^40", name, m.Strides[i])
		}
	}
	s.TensorMaps = append(s.TensorMaps, m)
}

// done returns the plan, or why the kernel does not take the shape.
func (p *planner) done(kernel, config, provenance string) (*Plan, error) {
	if p.err != nil {
		return nil, p.err
	}
	p.plan.Kernel, p.plan.Config, p.plan.Provenance = kernel, config, provenance
	return &p.plan, nil
}

// counts holds numbers of kernels' memory to how many there must be, and how large each may
// be.
func (p *planner) counts(name string, numbers []int32, want, most int64) error {
	if int64(len(numbers)) != want {
		p.refuse("%s of %d numbers: want %d", name, len(numbers), want)
	}
	for i, n := range numbers {
		if n < 0 || int64(n) > most {
			p.refuse("%s[%d] is %d: want 0 to %d", name, i, n, most)
		}
	}
	return p.err
}

// numbers makes kernels' bits of arguments that are numbers, and collects what is wrong
// with them.
type numbers struct{ refusal }

// float takes a finite number.
func (n *numbers) float(name string, x float32) uint64 {
	if y := float64(x); math.IsNaN(y) || math.IsInf(y, 0) {
		n.refuse("%s %g: want a finite number", name, x)
	}
	return uint64(math.Float32bits(x))
}

// floatFrom0 takes a finite number that means nothing below 0.
func (n *numbers) floatFrom0(name string, x float32) uint64 {
	if y := float64(x); !(y >= 0) || math.IsInf(y, 0) {
		n.refuse("%s %g: want a finite number, 0 or more", name, x)
	}
	return n.float(name, x)
}

// intFrom0 takes a number that means nothing below 0.
func (n *numbers) intFrom0(name string, x int64) uint64 {
	if x < 0 {
		n.refuse("%s %d: want 0 or more", name, x)
	}
	return uint64(x)
}

// dropout is what kernels take of a probability that an element is dropped: the draw of
// 16 bits below which it is, and the factor of what is kept, so that the mean stays.
// -1 is none, where 0 stands for the probability that the kernels were made with.
func (n *numbers) dropout(p float64) (threshold uint32, scale float32) {
	if p == -1 {
		p = 0
	}
	if !(p >= 0 && p < 1) {
		n.refuse("Dropout %g: want a probability from 0 up to, but not including, 1, or -1 for none", p)
		return 0, 0
	}
	threshold = uint32(min(65535, math.Round(p*65536)))
	return threshold, float32(65536 / (65536 - float64(threshold)))
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
