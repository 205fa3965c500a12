package nvrtc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Ptxas is NVIDIA's assembler, a program of the toolkit.
type Ptxas struct {
	Path     string
	Deadline time.Duration // for a file; 0 is 15 minutes
}

// FindPtxas looks for ptxas in dirs, the [SearchDirs] and PATH.
func FindPtxas(dirs ...string) (Ptxas, error) {
	path, err := findTool("ptxas", dirs)
	return Ptxas{Path: path}, err
}

// Version is the toolkit release ptxas is from, such as 13.0.88.
func (p Ptxas) Version(ctx context.Context) (string, error) { return toolVersion(ctx, p.Path) }

// Assembly is a cubin and what ptxas said about it.
type Assembly struct {
	Cubin       []byte
	Usage       []Usage // a kernel each, in ptxas' order
	Diagnostics []Diagnostic
	Log         string
}

// Usage is the resources of one kernel as ptxas -v states them.
type Usage struct {
	Kernel          string
	Registers       int // a thread
	Barriers        int
	StackBytes      int // a thread
	SpillStoreBytes int // of code that stores spilled registers
	SpillLoadBytes  int
	SharedBytes     int // static, a block
	ConstantBytes   int // all banks, parameters included
}

// Assemble turns PTX into a cubin for arch, such as sm_90a. It returns a
// *[CompileError] when ptxas refuses the PTX, and when the program was killed
// ctx's error, or one that wraps [ErrDeadline].
func (p Ptxas) Assemble(ctx context.Context, ptx []byte, arch string, flags ...string) (*Assembly, error) {
	if m := archName.FindString(arch); m == "" || !strings.HasPrefix(m, "sm_") {
		return nil, fmt.Errorf("%w: %q is no architecture ptxas assembles for: want a name such as sm_80 or sm_90a", ErrArch, arch)
	}
	var a Assembly
	err := withScratch("kernel.ptx", ptx, func(dir, path string) error {
		image := filepath.Join(dir, "kernel.cubin")
		args := append([]string{"-v", "--gpu-name=" + arch, "--output-file=" + image}, flags...)
		out, err := runTool(ctx, cmp.Or(p.Deadline, toolDeadline), p.Path, append(args, path)...)
		a.Log = strings.ReplaceAll(out.log(), path, "kernel.ptx")
		a.Diagnostics = Diagnose(a.Log)
		if err != nil {
			return assembleError(err, arch, &a)
		}
		a.Usage = ParseUsage(a.Log)
		a.Cubin, err = readImage(image)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// readImage reads what ptxas wrote.
func readImage(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxImage {
		return nil, fmt.Errorf("a cubin of %d bytes: want at most %d", info.Size(), maxImage)
	}
	return os.ReadFile(path)
}

// assembleError tells PTX that was refused from a ptxas that could not run.
func assembleError(err error, arch string, a *Assembly) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() < 0 {
		return fmt.Errorf("ptxas for %s: %w", arch, err)
	}
	for _, d := range a.Diagnostics {
		if strings.Contains(d.Message, "is not defined for option 'gpu-name'") {
			return fmt.Errorf("%w: ptxas does not assemble for %s: %s", ErrArch, arch, d.Message)
		}
	}
	return &CompileError{Source: "kernel.ptx", Arch: arch, Log: a.Log, Diagnostics: a.Diagnostics}
}

var (
	usageEntry = regexp.MustCompile(`Compiling entry function '([^']+)' for '`)
	usageItem  = regexp.MustCompile(`(?:(\d+) (registers|barriers|bytes (?:stack frame|spill stores|spill loads|smem|cmem\[\d+\])))|Function properties for (\S+)`)
)

// ParseUsage reads the resources of each kernel from what ptxas -v, or NVRTC
// given --ptxas-options=-v, printed.
func ParseUsage(log string) []Usage {
	var us []Usage
	inKernel := false // a device function's properties stand between those of kernels
	for line := range strings.Lines(log) {
		if m := usageEntry.FindStringSubmatch(line); m != nil {
			us = append(us, Usage{Kernel: m[1]})
			continue
		}
		if len(us) == 0 {
			continue
		}
		u := &us[len(us)-1]
		for _, m := range usageItem.FindAllStringSubmatch(line, -1) {
			if m[3] != "" {
				inKernel = m[3] == u.Kernel
				continue
			}
			if n, err := strconv.Atoi(m[1]); err == nil {
				u.set(m[2], n, inKernel)
			}
		}
	}
	return us
}

func (u *Usage) set(item string, n int, inKernel bool) {
	switch item {
	case "registers":
		u.Registers = n
	case "barriers":
		u.Barriers = n
	case "bytes smem":
		u.SharedBytes = n
	case "bytes stack frame":
		if inKernel {
			u.StackBytes = n
		}
	case "bytes spill stores":
		if inKernel {
			u.SpillStoreBytes = n
		}
	case "bytes spill loads":
		if inKernel {
			u.SpillLoadBytes = n
		}
	default: // bytes cmem[bank]
		u.ConstantBytes += n
	}
}
