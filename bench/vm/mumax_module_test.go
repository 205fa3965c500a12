//go:build mumax

package vm_test

// mumax/3 is named in go.mod for its files: see mumax_test.go. This import,
// which no build has, keeps it there.
import _ "github.com/mumax/3/cuda/cu"
