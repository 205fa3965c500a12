package cli

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

func TestSourceLine(t *testing.T) {
	text := []byte(`.version 8.0
.func f
{
	.loc	1 3 5
	ret;
}
.entry k
{
	bar.sync 0;
	.loc	1 7 2
	bar.sync 0;
	.loc	2 9 2, function_name $L__info_string0, inlined_at 1 8 1
	bar.sync 0;
	.loc	1 0 0
	ret;
}
	.file	1 "/a b/add.cu"
	.file	2 "/x/cuda_fp16.hpp", 1, 2
`)
	for line, want := range map[int]string{2: "", 5: "add.cu:3", 9: "", 11: "add.cu:7", 13: "cuda_fp16.hpp:9", 15: "cuda_fp16.hpp:9", 1000: ""} {
		require.Equal(t, want, sourceLine(text, line), line)
	}
	wrong := ptx.Errors{{File: "PTX of add.cu", Pos: ptx.Pos{Line: 11, Col: 2}, Msg: "wrong"}, {File: "PTX of add.cu", Pos: ptx.Pos{Line: 1, Col: 1}, Msg: "older"}}
	require.EqualError(t, atSource(wrong, "add.cu", text), "PTX of add.cu:11:2: wrong (add.cu:7)\nPTX of add.cu:1:1: older")
	require.Equal(t, wrong, atSource(wrong, "add.ptx", text), "it is the file that the lines are of")
	require.EqualError(t, atSource(errors.New("interrupted"), "add.cu", text), "interrupted")
	require.Equal(t, "file 1:3", sourceLine([]byte("\t.loc 1 3 5\nret;\n"), 2))
}
