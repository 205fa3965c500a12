package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/codegen/cubin"
	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/target"
)

// Toolchain is what turns a program into a cubin: NVRTC by way of CUDA C, or ptxas from
// our own PTX where NVRTC is missing or does not know the architecture. The zero value
// has neither; times are then predicted without knowing the registers.
type Toolchain struct {
	NVRTC *nvrtc.Compiler
	Ptxas *nvrtc.Ptxas

	Missing []error // why what is missing is
}

// FindToolchain looks in dirs and where nvrtc.SearchDirs says.
func FindToolchain(dirs ...string) Toolchain {
	var t Toolchain
	c, err := nvrtc.Find(dirs...)
	if err == nil {
		t.NVRTC = c
	} else {
		t.Missing = append(t.Missing, err)
	}
	p, err := nvrtc.FindPtxas(dirs...)
	if err == nil {
		t.Ptxas = &p
	} else {
		t.Missing = append(t.Missing, err)
	}
	return t
}

// builder compiles programs for one architecture in one way.
type builder struct {
	nvrtc *nvrtc.Compiler // one of the two, or neither
	ptxas *nvrtc.Ptxas
	name  string // compiler and version, "none" without
	flags []string
	cache *cache.Cache
	log   *slog.Logger
	notes []string
}

// builderFor picks the way to compile for a GPU.
func (t Toolchain) builderFor(ctx context.Context, g *target.GPU, c *cache.Cache, log *slog.Logger) (*builder, error) {
	b := &builder{name: "none", cache: c, log: log}
	if t.NVRTC != nil {
		major, minor := t.NVRTC.Version()
		archs := t.NVRTC.Archs()
		if len(archs) == 0 || slices.Contains(archs, g.CC.SM()) {
			b.nvrtc, b.name, b.flags = t.NVRTC, fmt.Sprintf("NVRTC %d.%d", major, minor), cudac.Flags()
			return b, nil
		}
		b.notes = append(b.notes, fmt.Sprintf("NVRTC %d.%d does not compile for sm_%d (it knows %v)", major, minor, g.CC.SM(), archs))
	}
	for _, err := range t.Missing {
		b.notes = append(b.notes, err.Error())
	}
	if t.Ptxas != nil {
		v, err := t.Ptxas.Version(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Ptxas.Path, err)
		}
		b.ptxas, b.name = t.Ptxas, "ptxas "+v
		return b, nil
	}
	return b, nil
}

// Identity is everything beside the source that decides what is made for a GPU.
func (t Toolchain) Identity(ctx context.Context, g *target.GPU) (string, error) {
	b, err := t.builderFor(ctx, g, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	return b.identity(), nil
}

// compiles tells whether there is a compiler.
func (b *builder) compiles() bool { return b.nvrtc != nil || b.ptxas != nil }

// identity is everything beside the source that decides what is made.
func (b *builder) identity() string { return strings.Join(append([]string{b.name}, b.flags...), " ") }

// source is a program's text and its digest.
type source struct {
	text string // CUDA C for NVRTC, PTX otherwise
	hash string
}

// source prints what would be compiled.
func (b *builder) source(c *codegen.Compiled) (source, error) {
	var s source
	var err error
	if b.nvrtc != nil {
		s.text, err = c.CUDA()
	} else {
		s.text, err = c.PTX()
	}
	s.hash = digest([]byte(s.text))
	return s, err
}

// built is what compiling made.
type built struct {
	PTX   []byte `json:"ptx"` // NVRTC's, or our own
	Cubin []byte `json:"cubin"`
	Log   string `json:"log,omitempty"`
}

// build compiles a source, or takes it from the cache. Without a compiler there is no
// cubin.
func (b *builder) build(ctx context.Context, s source, arch string) (*built, error) {
	if !b.compiles() {
		return &built{PTX: []byte(s.text)}, nil
	}
	key := cache.KeyOf("kgen build 2", b.identity(), arch, s.text)
	if data, ok := b.cache.Get(key); ok {
		var out built
		if err := json.Unmarshal(data, &out); err == nil && len(out.Cubin) > 0 {
			return &out, nil
		}
	}
	out, err := b.compile(ctx, s, arch)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	if err := b.cache.Put(key, data); err != nil { // costs time, not the result
		b.log.Warn("not cached", "error", err)
	}
	return out, nil
}

func (b *builder) compile(ctx context.Context, s source, arch string) (*built, error) {
	if b.nvrtc != nil {
		r, err := b.nvrtc.Compile(ctx, nvrtc.Source{Name: "kernel.cu", Text: s.text}, nvrtc.Options{Arch: arch, Flags: b.flags})
		if err != nil {
			return nil, err
		}
		return &built{PTX: r.PTX, Cubin: r.Cubin, Log: r.Log}, nil
	}
	a, err := b.ptxas.Assemble(ctx, []byte(s.text), arch)
	if err != nil {
		return nil, err
	}
	return &built{PTX: []byte(s.text), Cubin: a.Cubin, Log: a.Log}, nil
}

// resources reads what each kernel of a cubin takes.
func (b *built) resources() (map[string]cubin.Kernel, error) {
	f, err := cubin.Parse(b.Cubin)
	if err != nil {
		return nil, err
	}
	out := map[string]cubin.Kernel{}
	for _, k := range f.Kernels {
		out[k.Name] = k
	}
	return out, nil
}

// refused tells a program that a compiler would not take from a compiler that failed.
func refused(err error) bool {
	var c *nvrtc.CompileError
	return errors.As(err, &c)
}

// describe says in a sentence what compiles.
func (b *builder) describe() string {
	if b.compiles() {
		return b.name
	}
	if len(b.notes) == 0 {
		return "no compiler"
	}
	return "no compiler: " + strings.Join(b.notes, "; ")
}
