// Package nvrtc compiles CUDA C with NVIDIA's runtime compiler, and drives
// ptxas and nvdisasm where they are installed.
//
// The library is opened when [Find] is called, never linked: a program that
// imports this package builds and starts on a machine without CUDA, and built
// without cgo it answers [ErrUnavailable].
package nvrtc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrUnavailable is wrapped by the errors of [Find], [FindPtxas] and
// [FindNvdisasm] when the machine does not have what they look for.
var ErrUnavailable = errors.New("unavailable")

// ErrNoCgo is wrapped, beside ErrUnavailable, by the error of [Find] in a
// program that cannot open libraries.
var ErrNoCgo = errors.New("this program was built without cgo")

// ErrArch is wrapped by [Compiler.Compile] when the architecture is not one
// this NVRTC compiles for.
var ErrArch = errors.New("architecture not supported")

// Compiler is an opened NVRTC. It is safe for use by several goroutines.
type Compiler struct {
	path         string
	major, minor int
	archs        []int // compute capabilities times ten, ascending
	lib          *library
}

// Source is one CUDA C translation unit. Name is what diagnostics call it.
type Source struct {
	Name string
	Text string
}

// Options say how to compile.
type Options struct {
	// Arch is sm_80 (PTX and cubin) or compute_80 (PTX alone); a suffix a or
	// f asks for the architecture's own instructions or its family's.
	Arch string
	// LineInfo keeps source lines in the PTX (.loc) and the cubin.
	LineInfo bool
	// Kernel is a template's kernel to make, as its source would name it: axpy<float, 4>;
	// "" for what the source makes itself.
	Kernel string
	// Flags are passed on as they are, such as --use_fast_math.
	Flags []string
}

// Instance is a name if it is that of a template's kernel, with its arguments, which
// Options.Kernel makes; else "".
func Instance(name string) string {
	if strings.HasSuffix(strings.TrimSpace(name), ">") {
		return name
	}
	return ""
}

// Result is what a compilation made.
type Result struct {
	PTX   []byte // without the final NUL
	Cubin []byte // nil when Options.Arch names a virtual architecture

	Kernel string // name in PTX of Options.Kernel
	Log    string // warnings and, with --ptxas-options=-v, resource usage
}

// CompileError is a source that NVRTC refused.
type CompileError struct {
	Source      string // name of the source
	Arch        string
	Log         string
	Diagnostics []Diagnostic
}

// Error gives the first error of the log and how many there are.
func (e *CompileError) Error() string {
	errs := slices.DeleteFunc(slices.Clone(e.Diagnostics), func(d Diagnostic) bool { return d.Severity != Error })
	head := fmt.Sprintf("compiling %s for %s", e.Source, e.Arch)
	switch len(errs) {
	case 0:
		return head + ": " + strings.TrimSpace(e.Log)
	case 1:
		return head + ": " + errs[0].String() + missingHeader(errs[0].Message)
	}
	return fmt.Sprintf("%s: %s%s (and %d more)", head, errs[0], missingHeader(errs[0].Message), len(errs)-1)
}

// missingHeader says where a header may be found that a message of NVRTC misses.
func missingHeader(message string) string {
	if !strings.Contains(message, "open source file") {
		return ""
	}
	return ": want -I with the folder that has it (CUDA's own headers, such as cuda_fp16.h, do not come with NVRTC: the include folder of a CUDA toolkit has them, or of PyPI's nvidia-cuda-runtime)"
}

// Find opens the first NVRTC in dirs, which may be toolkit roots or library
// folders, then in the places that [SearchDirs] lists, then on the loader's
// own path.
func Find(dirs ...string) (*Compiler, error) {
	roots := searchRoots(dirs)
	var failed error
	for _, path := range libraryPaths(roots) {
		c, err := open(path)
		if err == nil {
			return c, nil
		}
		if errors.Is(err, ErrNoCgo) {
			return nil, fmt.Errorf("NVRTC %w: %w", ErrUnavailable, err)
		}
		if filepath.Base(path) != path { // it is there
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil {
		return nil, fmt.Errorf("NVRTC %w: %w", ErrUnavailable, failed)
	}
	return nil, fmt.Errorf("NVRTC %w: no libnvrtc in %s or on the loader's path", ErrUnavailable, strings.Join(roots, ", "))
}

func open(path string) (*Compiler, error) {
	lib, err := openLibrary(path)
	if err != nil {
		return nil, err
	}
	c := &Compiler{path: lib.path, lib: lib}
	if c.major, c.minor, err = lib.version(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.archs, err = lib.archs(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	slices.Sort(c.archs)
	return c, nil
}

// Path is the file the library was loaded from, or the bare name the loader
// resolved.
func (c *Compiler) Path() string { return c.path }

// HeaderFlags name the folder of CUDA's headers, such as cuda_fp16.h, if the library's
// installation has them: a toolkit does, the wheel of NVRTC alone does not.
func (c *Compiler) HeaderFlags() []string {
	path, err := filepath.EvalSymlinks(c.path)
	if err != nil {
		return nil // a bare name, which the loader found
	}
	dir := filepath.Join(filepath.Dir(filepath.Dir(path)), "include")
	if _, err := os.Stat(filepath.Join(dir, "cuda_fp16.h")); err != nil {
		return nil
	}
	return []string{"-I" + dir}
}

// Version is NVRTC's own version, such as 13, 0.
func (c *Compiler) Version() (major, minor int) { return c.major, c.minor }

// Archs lists the compute capabilities NVRTC compiles for, times ten,
// ascending: 75, 80, ... 120.
func (c *Compiler) Archs() []int { return slices.Clone(c.archs) }

// Compile compiles src. It returns a *[CompileError] when NVRTC refuses the
// source, an error that wraps [ErrArch] when it does not know the
// architecture, and ctx's error as soon as ctx is done; a compilation in flight
// is then cancelled, where NVRTC can (12.9 and newer), or else ends by itself,
// its result dropped.
func (c *Compiler) Compile(ctx context.Context, src Source, opt Options) (*Result, error) {
	if err := c.checkArch(opt.Arch); err != nil {
		return nil, err
	}
	flags := append([]string{"--gpu-architecture=" + opt.Arch}, opt.Flags...)
	if opt.LineInfo {
		flags = append(flags, "--generate-line-info")
	}
	for _, s := range append([]string{src.Name, src.Text, opt.Kernel}, flags...) {
		if i := strings.IndexByte(s, 0); i >= 0 {
			return nil, fmt.Errorf("compiling %q: NUL byte at offset %d of the source, a name or a flag", src.Name, i)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type outcome struct {
		result *Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := c.lib.compile(ctx, src, opt.Arch, opt.Kernel, flags)
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// What is believed of the sizes that NVRTC states.
const (
	maxLog   = 1 << 26
	maxImage = 1 << 30 // of PTX or a cubin
	maxArchs = 1 << 10
)
