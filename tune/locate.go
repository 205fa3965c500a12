package tune

import (
	"errors"
	"fmt"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
)

// Locate adds to NVRTC's refusal of printed CUDA C which kernel and which operation
// of the tile program its first error's line comes from. Any other error is returned
// as it is.
func Locate(err error, c *codegen.Compiled) error {
	var refused *nvrtc.CompileError
	if !errors.As(err, &refused) {
		return err
	}
	src, printErr := cudac.Print(c.Module)
	if printErr != nil {
		return err
	}
	for _, d := range refused.Diagnostics {
		if d.Severity != nvrtc.Error || d.Line < 1 || d.Line > len(src.Lines) {
			continue
		}
		switch at := src.Lines[d.Line-1]; {
		case at.Kernel == "":
			return err
		case at.Note == "":
			return fmt.Errorf("%w (in kernel %s)", err, at.Kernel)
		default:
			return fmt.Errorf("%w (in kernel %s, from %q)", err, at.Kernel, at.Note)
		}
	}
	return err
}
