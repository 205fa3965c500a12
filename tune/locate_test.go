package tune

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
)

func TestLocate(t *testing.T) {
	o := testOptions(t, t.TempDir())
	config, err := o.Problem.Default(o.GPU)
	require.NoError(t, err)
	p, err := o.Problem.Program(config)
	require.NoError(t, err)
	c, err := codegen.Compile(p, o.GPU, codegen.Options{})
	require.NoError(t, err)
	src, err := cudac.Print(c.Module)
	require.NoError(t, err)
	line := 1 + slices.IndexFunc(src.Lines, func(o cudac.Origin) bool { return o.Note != "" })
	require.Positive(t, line)
	at := src.Lines[line-1]

	refused := &nvrtc.CompileError{Source: "k.cu", Arch: "sm_80", Diagnostics: []nvrtc.Diagnostic{
		{File: "k.cu", Line: 1, Severity: nvrtc.Warning, Message: "unused"},
		{File: "k.cu", Line: line, Severity: nvrtc.Error, Message: "expected a \";\""},
	}}
	located := Locate(refused, c)
	require.ErrorIs(t, located, error(refused))
	require.EqualError(t, located, refused.Error()+` (in kernel `+at.Kernel+`, from "`+at.Note+`")`)

	refused.Diagnostics[1].Line = len(src.Lines) + 7
	require.Equal(t, error(refused), Locate(refused, c))
	other := errors.New("x")
	require.Equal(t, other, Locate(other, c))
}
