package vm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// A file in testdata/blocks is a kernel k(x, y, z) of CUDA C whose blocks wait for one another
// through global memory; the buffers hold zeros at first. Its head says how it is launched,
// and in lines "// slip CLASS: A => B" what makes it wrong, and how.
type blocksProgram struct {
	text        string
	grid, block uint32
	slips       []slip
}

type slip struct {
	class    bench.FaultClass
	from, to string
}

func readBlocksProgram(t *testing.T, file string) (p blocksProgram) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if launch, ok := strings.CutPrefix(line, "// launch: "); ok {
			_, err := fmt.Sscanf(launch, "grid=%d block=%d", &p.grid, &p.block)
			require.NoError(t, err, line)
			continue
		}
		if text, ok := strings.CutPrefix(line, "// slip "); ok {
			class, text, _ := strings.Cut(text, ": ")
			from, to, ok := strings.Cut(text, " =>")
			require.True(t, ok, line)
			p.slips = append(p.slips, slip{bench.FaultClass(class), from, strings.TrimSpace(to)})
			continue
		}
		p.text += line + "\n"
	}
	return p
}

// run runs the program, changed so, and gives its faults.
func (p *blocksProgram) run(t *testing.T, ptx []byte, opt vm.Options) []bench.Fault {
	t.Helper()
	opt.MaxSteps = 1 << 20
	x := newRunner(t, opt, "blocks.ptx", ptx)
	l := bench.Launch{Grid: dim{p.grid, 1, 1}, Block: dim{p.block, 1, 1}}
	for range 3 {
		l.Args = append(l.Args, in(x, make([]uint32, 1024)).arg())
	}
	r, err := x.dev.Launch(t.Context(), x.mod, "k", l)
	require.NoError(t, err)
	return r.Faults
}

// TestBlocks: what blocks do in the right order is no fault whatever the schedule, and each
// slip shows as what it is, if not in index order then in one of the random ones.
func TestBlocks(t *testing.T) {
	c := nvrtctest.Compiler(t)
	files, err := filepath.Glob("testdata/blocks/*.cu")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	schedules := []vm.Options{{}}
	for seed := range uint64(8) {
		schedules = append(schedules, vm.Options{Schedule: vm.Shuffle, Seed: seed})
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".cu"), func(t *testing.T) {
			p := readBlocksProgram(t, file)
			compile := func(text string) []byte {
				r, err := c.Compile(t.Context(), nvrtc.Source{Name: filepath.Base(file), Text: text}, nvrtc.Options{Arch: "compute_90"})
				require.NoError(t, err)
				return r.PTX
			}
			right := compile(p.text)
			for _, opt := range schedules {
				assert.Empty(t, p.run(t, right, opt), "%+v", opt)
			}
			for _, s := range p.slips {
				wrong, found := compile(replace(p.text, s.from, s.to)), 0
				for _, opt := range schedules {
					faults := p.run(t, wrong, opt)
					for _, f := range faults {
						assert.Equal(t, s.class, f.Class, "%s => %s, %+v: %s", s.from, s.to, opt, f.Message)
					}
					if len(faults) > 0 {
						found++
					}
				}
				few, many := schedules[len(schedules)-1], schedules[len(schedules)-1]
				few.Workers, many.Workers = 1, 5
				assert.Equal(t, p.run(t, wrong, few), p.run(t, wrong, many), "%s => %s: the same whatever the number of cores", s.from, s.to)
				assert.Positive(t, found, "%s => %s", s.from, s.to)
			}
		})
	}
}
