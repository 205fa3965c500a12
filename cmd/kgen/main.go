// Command kgen generates, checks and tunes GPU kernels.
package main

import (
	"os"
	"runtime"

	"github.com/kgen-dev/kgen/cmd/kgen/internal/cli"
)

// startHeap bytes count as in use from the start, so that the garbage collector does
// not run while a kernel is made: the way of Go's own compiler. No page of it is touched.
const startHeap = 64 << 20

func main() {
	heap := make([]byte, startHeap)
	code := cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	runtime.KeepAlive(heap)
	os.Exit(code)
}
