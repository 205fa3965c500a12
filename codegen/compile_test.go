package codegen_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
)

// TestDefaultsCompile lowers every family's default configuration for every
// architecture, with all verifiers on.
func TestDefaultsCompile(t *testing.T) {
	for _, f := range kernels.Families() {
		for _, name := range []string{"a100", "rtx3090", "l40s", "h100", "rtx5090"} {
			t.Run(f.Name+"/"+name, func(t *testing.T) {
				gpu, err := target.Lookup(name)
				require.NoError(t, err)
				p, err := f.Problem(nil, gpu)
				require.NoError(t, err)
				c, err := p.Default(gpu)
				require.NoError(t, err)
				prog, err := p.Program(c)
				require.NoError(t, err)
				var log strings.Builder
				o := codegen.Options{Verify: true, Dump: func(k, pass, text string) {
					log.WriteString("==== " + k + " after " + pass + "\n" + text + "\n")
				}}
				got, err := codegen.Compile(prog, gpu, o)
				if dir := os.Getenv("KGEN_DUMP"); dir != "" {
					require.NoError(t, os.WriteFile(dir+"/"+f.Name+"-"+name+".txt", []byte(log.String()), 0o644))
				}
				require.NoError(t, err)
				text, err := got.PTX()
				require.NoError(t, err)
				require.Contains(t, text, ".visible .entry ", "no entry")
				if dir := os.Getenv("KGEN_DUMP"); dir != "" {
					require.NoError(t, os.WriteFile(dir+"/"+f.Name+"-"+name+".ptx", []byte(text), 0o644))
				}
			})
		}
	}
}
