package trial

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/codegen/cubin"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/tune/spec"
	"github.com/kgen-dev/kgen/tune/store"
)

// Kernel tries the configurations of a described kernel in this process.
type Kernel struct {
	Spec     *spec.Bound
	Compiler *nvrtc.Compiler
	Flags    []string // of NVRTC, beside the description's
	Includes []string // absolute folders among them
	Device   bench.Device
	Seed     uint64 // of the buffers' contents
	// Called tells whether a symbol is that of what its source calls name.
	Called func(symbol, name string) bool
	Cache  *cache.Cache // of what the reference computes; nil: none

	mu       sync.Mutex // of what follows, and of the device
	sources  map[string]string
	outside  string              // digest of what results depend on beside programs; "" is not made yet
	unknown  string              // why it is one that nothing else has; "": it is not
	programs map[string]*program // those compiled last, by point
	recent   []string            // their keys, the oldest first
	buffers  []*bench.Argument
	data     []bench.CaseBuffer // of the buffers among the arguments, with what they must hold
}

// program is a compiled point.
type program struct {
	built   Built
	ptx     []byte
	kernel  string // as the module calls it
	launch  bench.CaseLaunch
	checked bool
}

// mostPrograms is how many compiled points are kept.
const mostPrograms = 32

func pointKey(point []int) string { return fmt.Sprint(point) }

// Digest is the SHA-256 in hexadecimal of texts, each after its length, so that no two lists
// of them give the same.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// prologue defines macros, NAME=VALUE, in the source itself: as flags they would reach the
// headers that NVRTC includes before it, which have parameters called a, too.
func prologue(defines []string) string {
	var b strings.Builder
	for _, d := range defines {
		name, value, _ := strings.Cut(d, "=")
		fmt.Fprintf(&b, "#define %s %s\n", name, value)
	}
	b.WriteString("#line 1\n")
	return b.String()
}

// Program is the digest of what a configuration is compiled from.
func (k *Kernel) Program(point []int) (string, error) {
	text, err := k.sourceDigest(k.Spec.Source)
	if err != nil {
		return "", err
	}
	l, err := k.Spec.Launch(point) // one that cannot be made is a digest's part too
	parts := []string{text, k.Spec.Kernel, fmt.Sprint(l, err), strings.Join(slices.Concat(k.Spec.Flags, k.Flags), " ")}
	return Digest(append(parts, k.Spec.Defines(point)...)...), nil
}

// Compile implements Bench.
func (k *Kernel) Compile(ctx context.Context, point []int) (Built, error) {
	start := time.Now()
	if err := k.holds(point); err != nil {
		return Built{}, err
	}
	b, p, err := k.compile(ctx, point)
	if err != nil {
		return b, err
	}
	b.Seconds = time.Since(start).Seconds()
	if p != nil {
		p.built = b
		k.keep(pointKey(point), p)
	}
	return b, nil
}

func (k *Kernel) keep(key string, p *program) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.programs == nil {
		k.programs = map[string]*program{}
	}
	if old := k.programs[key]; old != nil {
		p.checked = old.checked
	} else {
		k.recent = append(k.recent, key)
	}
	k.programs[key] = p
	if len(k.recent) > mostPrograms {
		delete(k.programs, k.recent[0])
		k.recent = k.recent[1:]
	}
}

func (k *Kernel) compile(ctx context.Context, point []int) (b Built, p *program, err error) {
	if b.Program, err = k.Program(point); err != nil {
		return b, nil, err
	}
	l, err := k.Spec.Launch(point)
	if err != nil {
		b.Outcome, b.Error = store.Constraints, "launch: "+err.Error()
		return b, nil, nil
	}
	c, err := k.cubin(ctx, k.Spec.Source, k.Spec.Kernel, k.Spec.Defines(point))
	var refused *nvrtc.CompileError
	switch {
	case errors.As(err, &refused):
		b.Outcome, b.Error = store.Compile, err.Error()
		return b, nil, nil
	case err != nil:
		return b, nil, err
	}
	b.Cubin = Digest(string(c.cubin))
	b.Same = Digest(b.Cubin, fmt.Sprint(l))
	b.Registers, b.SharedBytes = c.kernel.Registers, c.kernel.SharedBytes+int(l.SharedBytes)
	b.SpillBytes = c.kernel.SpillStoreBytes + c.kernel.SpillLoadBytes
	for _, u := range c.kernel.Units {
		if b.Instructions == nil {
			b.Instructions = map[string]int{}
		}
		b.Instructions[u.Op] = u.Count
	}
	if err := k.fits(&b, c.kernel, &l); err != nil {
		b.Outcome, b.Error = store.Resources, err.Error()
		return b, nil, nil
	}
	return b, &program{ptx: c.ptx, kernel: c.kernel.Name, launch: l}, nil
}

// fits refuses what no SM can hold.
func (k *Kernel) fits(b *Built, c *cubin.Kernel, l *bench.CaseLaunch) error {
	threads := threadsOf(l)
	if most := c.MaxThreads[0] * max(1, c.MaxThreads[1]) * max(1, c.MaxThreads[2]); most > 0 && threads > most {
		return fmt.Errorf("a block of %d threads: the kernel is compiled for at most %d", threads, most)
	}
	o, err := k.Spec.GPU.Occupancy(target.Usage{Registers: b.Registers, Shared: b.SharedBytes, Threads: threads, Barriers: max(1, c.Barriers)})
	if err != nil {
		return err
	}
	if o.CTAs == 0 {
		return fmt.Errorf("no SM holds a block of %d threads of %d registers with %d bytes of shared memory: limited by %s", threads, b.Registers, b.SharedBytes, o.Limiter)
	}
	b.CTAsPerSM = o.CTAs
	return nil
}

func threadsOf(l *bench.CaseLaunch) int {
	return int(l.Block[0]) * int(l.Block[1]) * int(l.Block[2])
}

// compiled is what the compiler made of a kernel.
type compiled struct {
	ptx, cubin []byte
	kernel     *cubin.Kernel
}

// cubin compiles a source with macros, NAME=VALUE, and finds the kernel in it.
func (k *Kernel) cubin(ctx context.Context, file, kernel string, defines []string) (*compiled, error) {
	text, err := k.source(file)
	if err != nil {
		return nil, err
	}
	flags := slices.Concat([]string{"-I" + k.Spec.Path(".")}, k.Spec.Flags, k.Flags, k.Compiler.HeaderFlags())
	r, err := k.Compiler.Compile(ctx, nvrtc.Source{Name: filepath.Base(file), Text: prologue(defines) + text}, nvrtc.Options{Arch: k.Spec.GPU.Arch(), Kernel: nvrtc.Instance(kernel), Flags: flags})
	if err != nil {
		return nil, err
	}
	f, err := cubin.Parse(r.Cubin)
	if err != nil {
		return nil, err
	}
	c := &compiled{ptx: r.PTX, cubin: r.Cubin}
	var names []string
	for i := range f.Kernels {
		names = append(names, f.Kernels[i].Name)
		called := k.Called(f.Kernels[i].Name, kernel)
		if r.Kernel != "" {
			called = f.Kernels[i].Name == r.Kernel
		}
		if called {
			if c.kernel != nil {
				return nil, mistake{fmt.Errorf(`%s: two kernels are called %s: want it declared extern "C"`, file, kernel)}
			}
			c.kernel = &f.Kernels[i]
		}
	}
	if c.kernel == nil {
		return nil, mistake{fmt.Errorf("%s: no kernel %s: it has %s", file, kernel, orNone(names))}
	}
	return c, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
