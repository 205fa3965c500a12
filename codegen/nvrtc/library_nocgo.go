//go:build !cgo || !(linux || darwin)

package nvrtc

import (
	"context"
	"fmt"
)

// library stands in for NVRTC in a build that cannot load one.
type library struct{ path string }

var errNoCgo = fmt.Errorf("%w: this program was built without cgo", ErrUnavailable)

func openLibrary(string) (*library, error) { return nil, errNoCgo }

func (*library) version() (major, minor int, err error) { return 0, 0, errNoCgo }

func (*library) archs() ([]int, error) { return nil, errNoCgo }

func (*library) compile(context.Context, Source, string, []string) (*Result, error) {
	return nil, errNoCgo
}
