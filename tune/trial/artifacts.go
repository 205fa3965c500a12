package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/launchfile"
)

// Artifacts are a configuration's files: the source with its macros, what the compiler
// made of it, and how it is launched.
type Artifacts struct {
	CUDA, PTX, Cubin []byte
	Launch           *launchfile.File
}

// Artifacts compiles a point in this process. The source begins with how it is launched.
func (k *Kernel) Artifacts(ctx context.Context, point []int) (*Artifacts, error) {
	l, err := k.Spec.Launch(point)
	if err != nil {
		return nil, err
	}
	defines := k.Spec.Defines(point)
	c, err := k.cubin(ctx, k.Spec.Source, k.Spec.Kernel, defines)
	if err != nil {
		return nil, err
	}
	text, err := k.source(k.Spec.Source)
	if err != nil {
		return nil, err
	}
	launch, err := k.describe(point, c, &l)
	if err != nil {
		return nil, err
	}
	head := k.comment(point, c.kernel.Name, &l)
	return &Artifacts{CUDA: []byte(head + prologue(defines) + text), PTX: c.ptx, Cubin: c.cubin, Launch: launch}, nil
}

// comment says what a source is and how to compile and launch it.
func (k *Kernel) comment(point []int, symbol string, l *bench.CaseLaunch) string {
	lines := []string{
		fmt.Sprintf("%s, configuration %s, for %s: %s with its macros.", k.Spec.Name, k.Spec.Space.At(point), k.Spec.GPU.Name, k.Spec.Source),
		"Compiled for " + k.Spec.GPU.Arch() + "; what it includes is beside the original.",
	}
	if flags := slices.Concat(k.Spec.Flags, k.Flags); len(flags) > 0 {
		lines = append(lines, "Flags: "+strings.Join(flags, " "))
	}
	lines = append(lines, fmt.Sprintf("Launch of %s: grid %s, block %s, %d bytes of dynamic shared memory, arguments", symbol, extents(l.Grid), extents(l.Block), l.SharedBytes))
	for _, a := range k.Spec.Arguments {
		lines = append(lines, "  "+a)
	}
	// A line break or a trailing backslash in a name must not end or extend the comment.
	clean := strings.NewReplacer("\n", " ", "\r", " ", "\\", "/")
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("// " + clean.Replace(line) + "\n")
	}
	return b.String()
}

func extents(e [3]uint32) string { return fmt.Sprintf("%dx%dx%d", e[0], e[1], e[2]) }
