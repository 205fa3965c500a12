//go:build !cgo || !(linux || darwin)

package nvrtc

import "context"

// library stands in for NVRTC in a build that cannot load one.
type library struct{ path string }

func openLibrary(string) (*library, error) { return nil, ErrNoCgo }

func (*library) version() (major, minor int, err error) { return 0, 0, ErrNoCgo }

func (*library) archs() ([]int, error) { return nil, ErrNoCgo }

func (*library) compile(context.Context, Source, string, string, []string) (*Result, error) {
	return nil, ErrNoCgo
}
