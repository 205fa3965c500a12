package vm_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// A file in testdata/programs is programs, each after a line "== NAME | CLASS" with the
// class of fault that it has, or without one: then it is right. "block: 64" and the like
// say how it is launched; "fix: A => B" makes it right. A line "def NAME TEXT" gives $NAME$
// a meaning in the programs after it.

// programHead is what every program may use: its warp %w, lane %l, block %ct, thread 0 as
// %q, its word of shared memory at %a and of the second buffer at %ad, and registers.
const (
	programRegisters = `.reg .b64 %ad, %g, %h, %v, %d<8>; .reg .b32 %x, %y, %z, %a, %b, %c, %e, %f, %i, %n, %m, %ct, %w, %l, %r<80>;
.reg .f32 %f<80>; .reg .b16 %s<8>; .reg .pred %p, %q, %u, %never, %pp;`
	programHead = `mov.u32 %ct, %ctaid.x; setp.eq.u32 %q, %t, 0; shr.u32 %w, %t, 5; and.b32 %l, %t, 31; mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a;
mad.wide.u32 %ad, %t, 4, %in1;
`
)

// readPrograms reads the programs of a file.
func readPrograms(t *testing.T, file string) (list []misdeed) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var means []string
	var m *misdeed
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		name, class, _ := strings.Cut(strings.TrimPrefix(line, "== "), " | ")
		def, text, _ := strings.Cut(strings.TrimPrefix(line, "def "), " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "def "):
			means = append(means, "$"+def+"$", strings.NewReplacer(means...).Replace(text))
		case strings.HasPrefix(line, "== "):
			list = append(list, misdeed{name: name, class: bench.FaultClass(class), fix: map[string]string{}, p: small{
				target: "sm_90a", decls: ".extern .shared .align 1024 .b8 sm[];", dynamic: 4096, block: 64, regs: programRegisters, body: programHead,
			}})
			m = &list[len(list)-1]
		default:
			m.line(t, strings.NewReplacer(means...).Replace(line))
		}
	}
	return list
}

// line adds a line to a program: how it is launched, what makes it right, or its text.
func (m *misdeed) line(t *testing.T, line string) {
	t.Helper()
	key, value, _ := strings.Cut(line, ": ")
	number := func() int {
		n, err := strconv.Atoi(value)
		require.NoError(t, err, line)
		return n
	}
	switch key {
	case "block":
		m.p.block = uint32(number())
	case "grid":
		m.p.grid = uint32(number())
	case "cluster":
		m.p.cluster = uint32(number())
	case "dyn":
		m.p.dynamic = int64(number())
	case "fresh":
		m.p.fresh = number()
	case "target":
		m.p.target = value
	case "entry":
		m.p.entry = value
	case "decls":
		m.p.decls += value
	case "fix":
		from, to, ok := strings.Cut(value, "=>")
		require.True(t, ok, line)
		m.fix[strings.TrimSpace(from)] = strings.TrimSpace(to)
	default:
		m.p.body += line + "\n"
	}
}

// right is the program as it should be.
func (m misdeed) right() small {
	p := m.p
	for from, to := range m.fix {
		p.body = replace(p.body, from, to)
	}
	return p
}

// TestPrograms: each program has the one fault that it names, wherever time and schedules
// take it, and none once it is put right. By default some of the moments.
func TestPrograms(t *testing.T) {
	files, err := filepath.Glob("testdata/programs/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	times := moments()
	if os.Getenv("KGEN_FULL") == "" {
		times = []vm.Options{times[0], times[1], times[2], times[11], times[19], times[20]}
	}
	for _, file := range files {
		for _, m := range readPrograms(t, file) {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+m.name, func(t *testing.T) {
				buffers := [][]byte{make([]byte, 2048), make([]byte, 2048)}
				for _, opt := range times {
					opt.MaxSteps = 1 << 22
					p := m.p
					p.opt = opt
					_, report := p.run(t, buffers...)
					m.judge(t, report, opt)
					if len(m.fix) == 0 {
						continue
					}
					p = m.right()
					p.opt = opt
					_, report = p.run(t, buffers...)
					require.Empty(t, report.Faults, "the right program, %+v", opt)
				}
			})
		}
	}
}

// judge holds a report to the fault that a program has, and to what every report says.
func (m misdeed) judge(t *testing.T, report *bench.Report, opt vm.Options) {
	t.Helper()
	if m.class == "" {
		require.Empty(t, report.Faults, "%+v", opt)
		return
	}
	require.NotEmpty(t, report.Faults, "%+v", opt)
	for _, f := range report.Faults {
		require.Equal(t, m.class, f.Class, "%+v: %s", opt, f.Message)
		require.Equal(t, "k", f.Kernel)
		require.Positive(t, f.Line)
		require.NotEmpty(t, f.PTX)
		require.NotEmpty(t, f.Message)
		require.Positive(t, f.Count)
		switch f.Class {
		case bench.SharedRace, bench.GlobalRace, bench.MissingProxyFence:
			require.NotNil(t, f.Address, f.Message)
			require.NotNil(t, f.Other, f.Message)
			require.Positive(t, f.Other.Line, f.Message)
		case bench.GlobalOutOfBounds, bench.SharedOutOfBounds, bench.MisalignedAddress, bench.WriteToConst:
			if !strings.HasPrefix(f.Message, "bulk copy of") {
				require.NotNil(t, f.Address, f.Message)
			}
			if f.Class == bench.MisalignedAddress && f.Space == "global" {
				require.Contains(t, f.Message, "of the buffer of ")
			}
		case bench.Deadlock:
			if strings.HasPrefix(f.Message, "the warp polls") {
				require.NotNil(t, f.Address, f.Message)
			}
		}
	}
}
