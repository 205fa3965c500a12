package vm_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// small is a small PTX program under test: registers, a body, buffers.
type small struct {
	target  string // "sm_80"
	decls   string // at module level
	entry   string // what the kernel asks for: ".maxnreg 128"
	regs    string // ".reg .b32 r<9>;"
	body    string // parameters are p0, p1, ...: pointers to the buffers
	grid    uint32
	block   uint32
	dynamic int64
	cluster uint32 // blocks
	opt     vm.Options
	scalars []bench.Arg // 32-bit parameters after the buffers
	fresh   int         // more buffers, of 512 bytes that nobody wrote, after the others

	lines  bool             // count by line too
	tensor *bench.TensorMap // of the first buffer: the last parameter, map
}

// text is the program as PTX. Every pointer parameter i is in %in<i>, the
// thread's number in %t.
func (s small) text(buffers int) string {
	var b strings.Builder
	target := s.target
	if target == "" {
		target = "sm_80"
	}
	fmt.Fprintf(&b, ".version 9.4\n.target %s\n.address_size 64\n%s\n.visible .entry k(", target, s.decls)
	for i := range buffers + len(s.scalars) {
		if i > 0 {
			b.WriteString(", ")
		}
		if i < buffers {
			fmt.Fprintf(&b, ".param .u64 p%d", i)
		} else {
			fmt.Fprintf(&b, ".param .b32 p%d", i)
		}
	}
	if s.tensor != nil {
		b.WriteString(", .param .align 64 .b8 map[128]")
	}
	fmt.Fprintf(&b, ") %s {\n.reg .b64 %%in<%d>;\n.reg .b32 %%t;\n%s\nmov.u32 %%t, %%tid.x;\n", s.entry, max(buffers, 1), s.regs)
	for i := range buffers {
		fmt.Fprintf(&b, "ld.param.u64 %%in%d, [p%d];\n", i, i)
	}
	b.WriteString(s.body)
	b.WriteString("\nret;\n}\n")
	return b.String()
}

// run runs the program over buffers and gives back their contents.
func (s small) run(tb testing.TB, buffers ...[]byte) ([][]byte, *bench.Report) {
	tb.Helper()
	out, report, err := s.try(tb, buffers...)
	require.NoError(tb, err)
	return out, report
}

func (s small) try(tb testing.TB, buffers ...[]byte) ([][]byte, *bench.Report, error) {
	tb.Helper()
	dev, err := vm.New(s.opt)
	require.NoError(tb, err)
	defer dev.Close()
	ctx := context.Background()
	m, err := dev.Load(ctx, "small.ptx", []byte(s.text(len(buffers)+s.fresh)))
	if err != nil {
		return nil, nil, err
	}
	l := bench.Launch{Grid: [3]uint32{max(s.grid, 1)}, Block: [3]uint32{max(s.block, 1)}, Cluster: [3]uint32{s.cluster}, SharedBytes: s.dynamic}
	var list []bench.Buffer
	for _, data := range buffers {
		b, err := dev.Alloc(int64(len(data)), 256)
		require.NoError(tb, err)
		require.NoError(tb, dev.Write(b, 0, data))
		list = append(list, b)
		l.Args = append(l.Args, bench.Pointer(b))
	}
	for range s.fresh {
		b, err := dev.Alloc(512, 256)
		require.NoError(tb, err)
		l.Args = append(l.Args, bench.Pointer(b))
	}
	l.Args = append(l.Args, s.scalars...)
	if s.tensor != nil {
		m := *s.tensor
		m.Address = list[0].Address
		arg, err := dev.TensorMap(&m)
		require.NoError(tb, err)
		l.Args = append(l.Args, arg)
	}
	l.Lines = s.lines
	report, err := dev.Launch(ctx, m, "k", l)
	if err != nil {
		return nil, nil, err
	}
	var out [][]byte
	for i, b := range list {
		data := make([]byte, len(buffers[i]))
		require.NoError(tb, dev.Read(b, 0, data))
		out = append(out, data)
	}
	return out, report, nil
}

func words(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func toWords(b []byte) []uint32 {
	v := make([]uint32, len(b)/4)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return v
}

func longs(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

func toLongs(b []byte) []uint64 {
	v := make([]uint64, len(b)/8)
	for i := range v {
		v[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return v
}

func float(v uint32) float32 { return math.Float32frombits(v) }

func contains(s, sub string) bool { return strings.Contains(s, sub) }

func replace(s, from, to string) string {
	if !strings.Contains(s, from) {
		panic("no " + from + " in " + s)
	}
	return strings.ReplaceAll(s, from, to)
}
