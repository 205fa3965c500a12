package nvrtc

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

var archName = regexp.MustCompile(`^(?:sm|compute)_([1-9][0-9]{1,3})[af]?$`)

// checkArch refuses a name that is no architecture and one that this NVRTC,
// being too old or too new, does not compile for.
func (c *Compiler) checkArch(arch string) error {
	m := archName.FindStringSubmatch(arch)
	if m == nil {
		return fmt.Errorf("%w: %q is no architecture: want a name such as sm_80, sm_90a or compute_80", ErrArch, arch)
	}
	if len(c.archs) == 0 { // an NVRTC before 11.2 cannot list them
		return nil
	}
	cc, err := strconv.Atoi(m[1])
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrArch, arch, err)
	}
	if slices.Contains(c.archs, cc) {
		return nil
	}
	lo, hi := c.archs[0], c.archs[len(c.archs)-1]
	switch {
	case cc > hi:
		return c.archError(arch, fmt.Sprintf("it is too old, sm_%d is its newest: want a newer CUDA toolkit", hi))
	case cc < lo:
		return c.archError(arch, fmt.Sprintf("it is too new, sm_%d is its oldest: want an older CUDA toolkit (12 for sm_50 to sm_72)", lo))
	}
	return c.archError(arch, fmt.Sprintf("it knows %v", c.archs))
}

func (c *Compiler) archError(arch, why string) error {
	return fmt.Errorf("%w: NVRTC %d.%d does not compile for %s: %s", ErrArch, c.major, c.minor, arch, why)
}
