package tune

import (
	"github.com/kgen-dev/kgen/codegen/nvrtc"
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
