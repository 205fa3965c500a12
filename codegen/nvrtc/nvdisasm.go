package nvrtc

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// Nvdisasm is NVIDIA's disassembler, a program of the toolkit.
type Nvdisasm struct{ Path string }

// FindNvdisasm looks for nvdisasm in dirs, the [SearchDirs] and PATH.
func FindNvdisasm(dirs ...string) (Nvdisasm, error) {
	path, err := findTool("nvdisasm", dirs)
	return Nvdisasm{path}, err
}

// Version is the toolkit release nvdisasm is from, such as 13.2.51.
func (n Nvdisasm) Version(ctx context.Context) (string, error) { return toolVersion(ctx, n.Path) }

// Disassemble gives the SASS of a cubin as text. Flags such as -c (code alone)
// and -plr (register life ranges) are nvdisasm's.
func (n Nvdisasm) Disassemble(ctx context.Context, cubin []byte, flags ...string) (string, error) {
	var text string
	err := withScratch("kernel.cubin", cubin, func(_, path string) error {
		out, err := runTool(ctx, toolDeadline, n.Path, append(flags, path)...)
		text = out.stdout
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("nvdisasm of %d bytes: %w: %s", len(cubin), err, out.stderr)
		}
		return err
	})
	return text, err
}
