package vm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// runner is a device with one module, for a test that computes with it. What
// fails is the test's failure, a reported fault too.
type runner struct {
	t       *testing.T
	dev     *vm.Device
	mod     *bench.Module
	rng     *rand.Rand
	printed string
}

// newRunner loads a module. Random numbers are the same for every runner.
func newRunner(t *testing.T, opt vm.Options, file string, ptx []byte) *runner {
	t.Helper()
	dev, err := vm.New(opt)
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	mod, err := dev.Load(t.Context(), file, ptx)
	require.NoError(t, err)
	return &runner{t: t, dev: dev, mod: mod, rng: rand.New(rand.NewPCG(1, 2))}
}

// array is a buffer of the device and what it is made of.
type array[T any] struct {
	x   *runner
	buf bench.Buffer
	n   int
}

// in is a buffer that holds values.
func in[T any](x *runner, values []T) array[T] {
	x.t.Helper()
	a := out[T](x, len(values))
	var b bytes.Buffer
	require.NoError(x.t, binary.Write(&b, binary.LittleEndian, values))
	require.NoError(x.t, x.dev.Write(a.buf, 0, b.Bytes()))
	return a
}

// out is a buffer of n values that nobody has written.
func out[T any](x *runner, n int) array[T] {
	x.t.Helper()
	var zero T
	buf, err := x.dev.Alloc(int64(n*binary.Size(zero)), 256)
	require.NoError(x.t, err)
	return array[T]{x, buf, n}
}

// get is what the buffer holds.
func (a array[T]) get() []T {
	a.x.t.Helper()
	data := make([]byte, a.buf.Size)
	require.NoError(a.x.t, a.x.dev.Read(a.buf, 0, data))
	values := make([]T, a.n)
	require.NoError(a.x.t, binary.Read(bytes.NewReader(data), binary.LittleEndian, values))
	return values
}

func (a array[T]) arg() bench.Arg { return bench.Pointer(a.buf) }

// null is a pointer to nothing.
type null struct{}

func (null) arg() bench.Arg { return bench.U64(0) }

// dim is a grid's or block's extents.
type dim = [3]uint32

// launch runs a kernel. Arguments are arrays, null{}, or numbers of the size
// of their parameters.
func (x *runner) launch(kernel string, grid, block dim, shared int, args ...any) *bench.Report {
	x.t.Helper()
	l := bench.Launch{Grid: grid, Block: block, SharedBytes: int64(shared)}
	for _, a := range args {
		if p, ok := a.(interface{ arg() bench.Arg }); ok {
			l.Args = append(l.Args, p.arg())
			continue
		}
		if n, ok := a.(int); ok {
			a = int32(n)
		}
		b, err := binary.Append(nil, binary.LittleEndian, a)
		require.NoError(x.t, err)
		l.Args = append(l.Args, b)
	}
	r, err := x.dev.Launch(context.Background(), x.mod, kernel, l)
	require.NoError(x.t, err, kernel)
	for _, f := range r.Faults {
		x.t.Errorf("%s: %s", kernel, fmt.Sprint(f))
	}
	if x.t.Failed() {
		x.t.FailNow()
	}
	x.printed += r.Printed
	return r
}

// floats is n numbers from -1 to 1.
func (x *runner) floats(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = 2*x.rng.Float32() - 1
	}
	return v
}

// ints is n numbers from 0 to below most.
func (x *runner) ints(n, most int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(x.rng.IntN(most))
	}
	return v
}

// bytesBelow is n bytes from 0 to below most.
func (x *runner) bytesBelow(n, most int) []uint8 {
	v := make([]uint8, n)
	for i := range v {
		v[i] = uint8(x.rng.IntN(most))
	}
	return v
}

// groups is how many groups of size cover n.
func groups(n, size int) uint32 { return uint32((n + size - 1) / size) }
