package vm_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// mapTypeNumber is a type's number in tensormap.replace: PTX ISA 9.7.9.26.
var mapTypeNumber = map[ptx.Type]int{
	ptx.U8: 0, ptx.U16: 1, ptx.U32: 2, ptx.S32: 3, ptx.U64: 4, ptx.S64: 5, ptx.F16: 6, ptx.F32: 7, ptx.F64: 9, ptx.BF16: 10, ptx.TF32: 11,
}

// replaced are the instructions that make a map out of 128 bytes of zeros at an
// address, by every field, in an order of r's.
func (m *drawnMap) replaced(where, space string, r *rand.Rand) string {
	var list []string
	set := func(field, typ, value string, number ...int) {
		at := ""
		for _, n := range number {
			at = fmt.Sprintf("%d, ", n)
		}
		list = append(list, fmt.Sprintf("tensormap.replace.tile.%s%s.b1024.%s [%s], %s%s;\n", field, space, typ, where, at, value))
	}
	set("global_address", "b64", "%base")
	set("rank", "b32", fmt.Sprint(len(m.Box)-1))
	set("elemtype", "b32", fmt.Sprint(mapTypeNumber[m.Type]))
	set("interleave_layout", "b32", "0")
	set("swizzle_mode", "b32", fmt.Sprint(map[int]int{0: 0, 32: 1, 64: 2, 128: 3}[m.Swizzle]))
	atom := map[int]int{0: 0, 32: 1, 64: 3}[m.Atom]
	if m.Flip {
		atom = 2
	}
	set("swizzle_atomicity", "b32", fmt.Sprint(atom))
	set("fill_mode", "b32", fmt.Sprint(truthOf(m.FillNaN)))
	for i := range m.Box {
		set("box_dim", "b32", fmt.Sprint(m.Box[i]), i)
		set("global_dim", "b32", fmt.Sprint(m.Dims[i]), i)
		set("element_stride", "b32", fmt.Sprint(m.ElementStrides[i]), i)
		if i > 0 {
			set("global_stride", "b64", fmt.Sprint(m.Strides[i-1]), i-1)
		}
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return strings.Join(list, "")
}

// makeMap is a program's part that makes the map in shared memory and publishes it,
// or in global memory: for a warp, with the tensor's address in %base and that of
// the map then in %m.
func (m *drawnMap) makeMap(shared bool, r *rand.Rand) string {
	const zero = "mov.b64 %m, made; mad.wide.u32 %g, %t, 4, %m; st.global.b32 [%g], 0;"
	if !shared {
		return zero + " bar.warp.sync -1;\n@!%q bra MADE;\n" + m.replaced("%m", ".global", r) + "MADE: fence.proxy.tensormap::generic.release.gpu; bar.warp.sync -1; fence.proxy.tensormap::generic.acquire.gpu [%m], 128;\n"
	}
	return zero + "\nmov.u32 %a, stage; mad.lo.u32 %i, %t, 4, %a; st.shared.b32 [%i], 0; bar.warp.sync -1;\n@!%q bra MADE;\n" + m.replaced("%a", ".shared::cta", r) +
		"MADE: bar.warp.sync -1; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%m], [%a], 128;\nfence.proxy.tensormap::generic.acquire.gpu [%m], 128; bar.warp.sync -1;\n"
}

// makingKernel loads a box of so many bytes by a map that it makes itself.
func (m *drawnMap) makingKernel(n int, shared bool, r *rand.Rand) string {
	text := replace(tensorKernel(len(m.Box), int64(n), ""), "mov.b64 %m, map; cvta.param.u64 %m, %m;", "mov.u32 %t, %tid.x; ld.param.u64 %base, [map];\n"+m.makeMap(shared, r))
	text = replace(text, ".param .align 64 .b8 map[128]", ".param .u64 map")
	text = replace(text, ".reg .pred %p, %q;", ".reg .pred %p, %q; .reg .b64 %base;")
	return replace(text, ".visible .entry", ".global .align 128 .b8 made[128];\n.shared .align 128 .b8 stage[128];\n.visible .entry")
}

// launchMade runs such a kernel and returns the box's bytes.
func (m *drawnMap) launchMade(t require.TestingT, text string, n int, opt vm.Options) (*bench.Report, []byte) {
	ctx := context.Background()
	dev, err := vm.New(opt)
	require.NoError(t, err)
	defer dev.Close()
	mod, err := dev.Load(ctx, "made.ptx", []byte(text))
	require.NoError(t, err)
	g, err := dev.Alloc(int64(len(m.tensor)), 256)
	require.NoError(t, err)
	require.NoError(t, dev.Write(g, 0, m.tensor))
	o, err := dev.Alloc(int64(n), 256)
	require.NoError(t, err)
	args := []bench.Arg{bench.Pointer(g), bench.Pointer(o)}
	for _, c := range m.at {
		args = append(args, bench.I32(c))
	}
	report, err := dev.Launch(ctx, mod, "k", bench.Launch{Grid: [3]uint32{1}, Block: [3]uint32{32}, SharedBytes: int64(n) + 2048, Args: args})
	require.NoError(t, err)
	got := make([]byte, n)
	require.NoError(t, dev.Read(o, 0, got))
	return report, got
}

// TestTensorMapMadeOnDevice: loads by maps that the kernel makes from zeros, field
// by field, bring what maps of the host do.
func TestTensorMapMadeOnDevice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t, true)
		n := m.each(func(int, int64) {})
		shared := rapid.Bool().Draw(t, "in shared memory")
		opt := timings[rapid.IntRange(0, len(timings)-1).Draw(t, "timing")]
		_, want := m.run(t, "", bytes.Repeat([]byte{0xee}, n), opt)

		r := rand.New(rand.NewPCG(uint64(n), 5))
		report, got := m.launchMade(t, m.makingKernel(n, shared, r), n, opt)
		require.Empty(t, report.Faults)
		require.Equal(t, want, got)
	})
}

// TestTensorMapNotAcquired: a map that the kernel made and nobody acquires by the fence of
// its proxy is no map for copies yet.
func TestTensorMapNotAcquired(t *testing.T) {
	var m *drawnMap
	rapid.Check(t, func(t *rapid.T) { m = drawMap(t, true) })
	n := m.each(func(int, int64) {})
	text := m.makingKernel(n, false, rand.New(rand.NewPCG(1, 5)))
	text = replace(text, "fence.proxy.tensormap::generic.acquire.gpu [%m], 128;", "")
	for _, opt := range timings {
		report, _ := m.launchMade(t, text, n, opt)
		require.Len(t, report.Faults, 1)
		require.Equal(t, bench.MissingProxyFence, report.Faults[0].Class)
		require.Contains(t, report.Faults[0].Message, "fence.proxy.tensormap")
	}
}

// TestTensorReductions: every operation and element type of
// cp.reduce.async.bulk.tensor, over a box that reaches over the tensor's edge.
func TestTensorReductions(t *testing.T) {
	const valid = ".add.u32.add.s32.add.u64.add.f16.add.bf16.add.f32.min.u32.min.s32.min.u64.min.s64.min.f16.min.bf16.max.u32.max.s32.max.u64.max.s64.max.f16.max.bf16." +
		"inc.u32.dec.u32.and.b32.or.b32.xor.b32.and.b64.or.b64.xor.b64."
	types := map[string]ptx.Type{"u32": ptx.U32, "s32": ptx.S32, "u64": ptx.U64, "s64": ptx.S64, "f16": ptx.F16, "bf16": ptx.BF16, "f32": ptx.F32, "b32": ptx.S32, "b64": ptx.U64}
	n := 0
	for i, c := range combinations() {
		c.op = strings.TrimSuffix(c.op, ".noftz")
		if !strings.Contains(valid, "."+c.String()+".") {
			continue
		}
		n++
		t.Run(c.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(i)))
			if c.typ == "f32" { // whether its subnormals are flushed is not said
				values := c.values
				c.values = func(r *rand.Rand, bits int) uint64 {
					for {
						if v := values(r, bits); v&single.inf() > 30<<23 {
							return v
						}
					}
				}
			}
			size := c.bits / 8
			m := &drawnMap{}
			m.Type, m.Dims, m.Box, m.ElementStrides = types[c.typ], []uint64{uint64(48 / size), 5}, []uint32{uint32(32 / size), 4}, []uint32{1, 1}
			m.Strides, m.at = []uint64{64}, []int32{int32(24 / size), 2}
			m.tensor = c.elements(r, 64*5)
			box := c.elements(r, 32*4)
			want := bytes.Clone(m.tensor)
			m.each(func(i int, offset int64) {
				if offset >= 0 {
					copy(want[offset:], c.onEach(m.tensor[offset:][:size], box[i*size:][:size]))
				}
			})
			for _, opt := range timings {
				got, _ := m.run(t, "cp.reduce ."+c.op, box, opt)
				require.Equal(t, want, got)
			}
		})
	}
	require.Equal(t, strings.Count(valid, ".")/2, n)
}
