// Command kgen generates, checks and tunes GPU kernels.
package main

import (
	"os"

	"github.com/kgen-dev/kgen/cmd/kgen/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
