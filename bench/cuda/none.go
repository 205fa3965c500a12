//go:build !cuda || !cgo || !linux

package cuda

import "github.com/kgen-dev/kgen/bench"

// Find says what GPUs there are: ErrNotBuilt.
func Find() (*Info, error) { return nil, ErrNotBuilt }

// Open opens a GPU by its number: ErrNotBuilt.
func Open(int) (bench.Device, error) { return nil, ErrNotBuilt }
