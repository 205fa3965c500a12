package cudac_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/simt/simttest"
)

// TestPrintersAgree runs every operation's sample on the virtual machine, from
// the PTX printed directly, from NVRTC's PTX of the CUDA C, and cleaned up: the
// same input must give the same bytes.
func TestPrintersAgree(t *testing.T) {
	c := nvrtctest.Compiler(t)
	for _, m := range simttest.Operations() {
		t.Run(m.Arch, func(t *testing.T) {
			source, err := cudac.Print(m)
			require.NoError(t, err)
			a, err := c.Compile(t.Context(), nvrtc.Source{Name: "k.cu", Text: source.Text}, nvrtc.Options{Arch: m.Arch, Flags: []string{"--fmad=false"}})
			require.NoError(t, err)
			direct, err := ptx.FromSIMT(m)
			require.NoError(t, err)
			for _, k := range m.Kernels {
				simt.Clean(k)
			}
			clean, err := ptx.FromSIMT(m)
			require.NoError(t, err)
			one, two, three := load(t, []byte(direct.String())), load(t, a.PTX), load(t, []byte(clean.String()))
			for _, k := range m.Kernels {
				input := randomInput(k.Name)
				want := one.run(t, k, input)
				same(t, k.Name+" by NVRTC", want, two.run(t, k, input))
				same(t, k.Name+" cleaned up", want, three.run(t, k, input))
			}
		})
	}
}

// same compares what the threads stored, and says where it differs first.
func same(t *testing.T, what string, want, got []byte) {
	t.Helper()
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("%s: byte %d of thread %d is %#x, want %#x", what, i%256, i/256, got[i], want[i])
			return
		}
	}
}

type loaded struct {
	dev bench.Device
	m   *bench.Module
}

func load(t *testing.T, text []byte) loaded {
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	m, err := dev.Load(t.Context(), "k.ptx", text)
	require.NoError(t, err)
	return loaded{dev, m}
}

// run launches one block of a sample on a copy of the input.
func (l loaded) run(t *testing.T, k *simt.Kernel, input []byte) []byte {
	b, err := l.dev.Alloc(int64(len(input)), 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.dev.Free(b)) }()
	require.NoError(t, l.dev.Write(b, 0, input))
	launch := bench.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{uint32(k.Threads), 1, 1}, Args: []bench.Arg{bench.Pointer(b)}}
	if k.Cluster > 1 {
		launch.Grid[0] = uint32(k.Cluster)
	}
	r, err := l.dev.Launch(context.Background(), l.m, k.Name, launch)
	require.NoError(t, err, k.Name)
	for _, f := range r.Faults {
		t.Errorf("%s: %+v", k.Name, f)
	}
	out := make([]byte, len(input))
	require.NoError(t, l.dev.Read(b, 0, out))
	return out
}

// randomInput is memory for 64 threads of 256 bytes: random bits, with small
// numbers and halves of ordinary size among them.
func randomInput(seed string) []byte {
	r := rand.New(rand.NewPCG(uint64(len(seed)), 3))
	b := make([]byte, 64*256)
	for i := 0; i < len(b); i += 8 {
		for j := range 8 {
			b[i+j] = byte(r.Uint32())
		}
		switch r.IntN(4) {
		case 0: // a small integer
			for j := 1; j < 8; j++ {
				b[i+j] = 0
			}
		case 1: // floats near one, of any width
			b[i+1], b[i+3], b[i+7] = 0x3c, 0x3f, 0x3f
		}
	}
	return b
}
