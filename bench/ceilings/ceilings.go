// Package ceilings measures what a device's memory, L2 and arithmetic reach, with kernels
// that do nothing else: the measured roofs of a roofline.
package ceilings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kgen-dev/kgen/bench"
)

// Ceiling is a rate that a device reached.
type Ceiling struct {
	Unit       string           `json:"unit"`    // "HBM", "L2", or a kind of arithmetic: "fp32", "bf16"
	Pattern    string           `json:"pattern"` // what was done, for rates differ by it
	Rate       float64          `json:"rate"`    // GB/s of memory, TFLOP/s of arithmetic
	In         string           `json:"in"`      // "GB/s" or "TFLOP/s"
	US         float64          `json:"time_us"` // of a launch: the median
	Provenance bench.Provenance `json:"provenance"`
}

// Size is how much to do.
type Size struct {
	SM      int   // compute capability: 80
	SMs     int   // multiprocessors
	Bytes   int64 // of each buffer of a stream; several times the L2
	L2Bytes int64 // that the L2 keeps
	Rounds  int   // of the arithmetic
	Repeat  int   // launches of which the median counts
}

// Sizes for a device: buffers of half a GiB, far more than any L2.
func Sizes(sm, sms int, l2 int64) Size {
	if l2 == 0 {
		l2 = 8 << 20
	}
	return Size{SM: sm, SMs: sms, Bytes: 512 << 20, L2Bytes: l2, Rounds: 256, Repeat: 11}
}

// Oldest is the first compute capability that the kernels run on.
const Oldest = 75

// ErrCounts is the error for a device that counts and has no clock.
var ErrCounts = errors.New("ceilings are measured: want a GPU")

// Measure times every kernel on a device.
func Measure(ctx context.Context, dev bench.Device, z Size) ([]Ceiling, error) {
	if dev.Provenance() != bench.Measured {
		return nil, ErrCounts
	}
	if z.SM < Oldest {
		return nil, fmt.Errorf("compute capability %d: want %d or newer", z.SM, Oldest)
	}
	var out []Ceiling
	err := each(ctx, dev, z, func(p *probe, run func() (*bench.Report, error)) error {
		var times []time.Duration
		for i := range z.Repeat + 2 {
			r, err := run()
			if err != nil {
				return err
			}
			if i >= 2 { // the first ones wake the clocks and fill the caches
				times = append(times, r.Time)
			}
		}
		slices.Sort(times)
		us := float64(times[len(times)/2]) / float64(time.Microsecond)
		if us == 0 {
			return fmt.Errorf("%s %s: a time of 0", p.unit, p.pattern)
		}
		c := Ceiling{Unit: p.unit, Pattern: p.pattern, In: "GB/s", Rate: p.bytes / us / 1e3, US: us, Provenance: bench.Measured}
		if p.flops > 0 {
			c.In, c.Rate = "TFLOP/s", p.flops/us/1e6
		}
		out = append(out, c)
		return nil
	})
	return out, err
}

// probe is a kernel with what it does.
type probe struct {
	unit, pattern, kernel string
	bytes, flops          float64 // of a launch
	args                  []bench.Arg
}

// module is the PTX of all probes.
func module(z Size) string {
	return header(z.SM) + strings.Join([]string{
		stream("init", 0, true), stream("read", 1, false), stream("scale", 1, true), stream("triad", 2, true), fma(), mma(productOf(z.SM)),
	}, "")
}

// each loads the probes and calls f with each and how to run it once.
func each(ctx context.Context, dev bench.Device, z Size, f func(*probe, func() (*bench.Report, error)) error) error {
	m, err := dev.Load(ctx, "ceilings.ptx", []byte(module(z)))
	if err != nil {
		return err
	}
	defer dev.Unload(m)
	var buffers []bench.Buffer
	defer func() {
		for _, b := range buffers {
			dev.Free(b)
		}
	}()
	steps, bytes := z.steps(z.Bytes)
	for range 3 {
		b, err := dev.Alloc(bytes, 0)
		if err != nil {
			return fmt.Errorf("a buffer of %d bytes: %w", bytes, err)
		}
		buffers = append(buffers, b)
	}
	launch := bench.Launch{Grid: [3]uint32{uint32(z.SMs * blocksPerSM)}, Block: [3]uint32{threads}}
	for _, p := range z.probes(buffers, steps, bytes) {
		run := func() (*bench.Report, error) {
			l := launch
			l.Args = p.args
			return dev.Launch(ctx, m, p.kernel, l)
		}
		if err := f(&p, run); err != nil {
			return err
		}
	}
	return nil
}

// sweepBytes are those that all threads move in a step.
func (z Size) sweepBytes() int64 { return int64(z.SMs) * blocksPerSM * threads * 16 * unroll }

// steps returns how many steps walk over about so many bytes, and how many those are.
func (z Size) steps(bytes int64) (uint32, int64) {
	n := max(1, bytes/z.sweepBytes())
	return uint32(n), n * z.sweepBytes()
}

func (z Size) probes(b []bench.Buffer, steps uint32, bytes int64) []probe {
	skip := bench.U64(uint64(z.sweepBytes() / unroll))
	walk := func(steps, rounds uint32) []bench.Arg {
		return []bench.Arg{bench.Pointer(b[0]), bench.Pointer(b[1]), bench.Pointer(b[2]), skip, bench.U32(steps), bench.U32(rounds)}
	}
	const l2Rounds = 16
	l2Steps, l2Bytes := z.steps(z.L2Bytes / 2) // the half that every SM's reads may keep
	all := float64(z.SMs * blocksPerSM * threads)
	p, rounds := productOf(z.SM), float64(z.Rounds)
	arithmetic := []bench.Arg{bench.Pointer(b[2]), bench.U32(uint32(z.Rounds))}
	return []probe{
		// In this order every buffer is written before it is read.
		{unit: "HBM", pattern: "init", kernel: "init", bytes: float64(bytes), args: []bench.Arg{bench.Pointer(b[0]), bench.Pointer(b[1]), bench.Pointer(b[0]), skip, bench.U32(steps), bench.U32(1)}},
		{unit: "HBM", pattern: "read", kernel: "read", bytes: float64(bytes), args: walk(steps, 1)},
		{unit: "HBM", pattern: "scale", kernel: "scale", bytes: 2 * float64(bytes), args: []bench.Arg{bench.Pointer(b[0]), bench.Pointer(b[1]), bench.Pointer(b[1]), skip, bench.U32(steps), bench.U32(1)}},
		{unit: "HBM", pattern: "triad", kernel: "triad", bytes: 3 * float64(bytes), args: walk(steps, 1)},
		{unit: "L2", pattern: fmt.Sprintf("read of %.3g MiB", float64(l2Bytes)/(1<<20)), kernel: "read", bytes: l2Rounds * float64(l2Bytes), args: walk(l2Steps, l2Rounds)},
		{unit: "fp32", pattern: "FMA", kernel: "fma", flops: 2 * all * rounds * chains * fmaRepeat, args: arithmetic},
		{unit: p.name, pattern: "mma.sync", kernel: "mma", flops: all / 32 * rounds * chains * mmaRepeat * p.flops, args: arithmetic},
	}
}
