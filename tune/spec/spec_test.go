package spec_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/tune/spec"
)

func h100(t *testing.T) *target.GPU {
	t.Helper()
	g, err := target.Lookup("h100")
	require.NoError(t, err)
	return g
}

func read(t *testing.T, text string) *spec.Spec {
	t.Helper()
	file := filepath.Join(t.TempDir(), "space.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	s, err := spec.Read(file)
	require.NoError(t, err)
	return s
}

const scale = `{
  "source": "scale.cu", "kernel": "scale", "sizes": {"n": 1000},
  "parameters": [
    {"name": "block", "powers": [32, 256]},
    {"name": "unroll", "range": [1, 8, 3]},
    {"name": "width", "values": [1, 4]},
    {"name": "load", "words": ["plain", "ldg"]}
  ],
  "let": {"elements": "tile*width", "tile": "block*unroll"},
  "constraints": ["elements <= n", {"name": "aligned", "expr": "n % width == 0", "doc": "whole vectors"}, "load == \"ldg\" || width == 1"],
  "default": {"block": 64, "unroll": 1, "width": 1, "load": "plain"},
  "grid": "ceildiv(n, elements)", "block": ["block"], "shared": "4*block",
  "arguments": ["f32[{n}]:random", "f32[{n}]:none", "i32={n}", "i32={elements}"],
  "tolerance": {"relative": 1e-6},
  "reference": {"kernel": "plain", "grid": ["ceildiv(n, 128)"], "block": [128], "defines": {"width": 1}}
}`

func TestOwnForm(t *testing.T) {
	s := read(t, scale)
	b, err := s.Bind(h100(t))
	require.NoError(t, err)
	n := b.Space.Count()
	require.Equal(t, int64(4*3*2*2), n.Total)
	first, err := b.First()
	require.NoError(t, err)
	require.Equal(t, []int{1, 0, 0, 0}, first)
	at := []int{1, 2, 0, 1}
	require.True(t, b.Space.Valid(at))
	require.Equal(t, []string{"block=64", "unroll=7", "width=1", "load=ldg", "load_plain=0", "load_ldg=1"}, b.Defines(at))
	l, err := b.Launch(at)
	require.NoError(t, err)
	require.Equal(t, [3]uint32{3, 1, 1}, l.Grid)
	require.Equal(t, [3]uint32{64, 1, 1}, l.Block)
	require.Equal(t, int64(256), l.SharedBytes)
	args, err := b.Buffers(1)
	require.NoError(t, err)
	values, err := b.Values(at, args)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, -1, -1}, []int{values[0].Buffer, values[1].Buffer, values[2].Buffer, values[3].Buffer})
	require.Equal(t, []byte{0xc0, 0x01, 0, 0}, values[3].Bytes) // 448
	l, err = b.ReferenceLaunch()
	require.NoError(t, err)
	require.Equal(t, [3]uint32{8, 1, 1}, l.Grid)
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		``:                                       "line 1: the text ends early",
		`[]`:                                     "line 1: found a list: want an object",
		"{\n\"source\" \"x\"}":                   "line 2: invalid character",
		`{}`:                                     `no "source"`,
		`{"source": "a.cu"}`:                     `no "kernel"`,
		`{"source": "a.cu", "kernel": "k"}`:      `no "parameters"`,
		"{\"source\": \"a.cu\",\n\"kernel\": 1}": "line 2: kernel: found a number: want a string",
		"{\"source\": \"a.cu\",\n\"sizes\": {\"n\": 1,\n\"n\": 2}}": "line 3: n: there in line 2 too: want it once",
		`{"sorce": 1}`: `unknown field "sorce": want some of name, doc, source, kernel, `,
		`{"source": "a.cu", "kernel": "k", "parameters": [{"name": "a"}]}`:                                                                                                  `parameter 1 (a): want one of "values", "powers", "range" and "words"`,
		`{"source": "a.cu", "kernel": "k", "parameters": [{"name": "a", "powers": [3, 8]}]}`:                                                                                "powers [3 8]: want the first and the last power of two",
		`{"source": "a.cu", "kernel": "k", "parameters": [{"name": "a", "range": [1, 9000000000]}]}`:                                                                        "of at most 1048576 values",
		`{"source": "a.cu", "kernel": "k", "parameters": [{"name": "a", "values": [1]}]}`:                                                                                   `"grid" of 0 expressions: want one to three`,
		`{"source": "a.cu", "kernel": "k", "parameters": [{"name": "a", "values": [1]}], "grid": 1, "block": 1, "reference": {}}`:                                           "reference: the kernel itself",
		`{"source": "/etc/passwd", "kernel": "k", "parameters": [{"name": "a", "values": [1]}], "grid": 1, "block": 1}`:                                                     `file "/etc/passwd": want one in the description's folder or below it`,
		`{"source": "sub/../../a.cu", "kernel": "k", "parameters": [{"name": "a", "values": [1]}], "grid": 1, "block": 1}`:                                                  `file "sub/../../a.cu": want one in the description's folder`,
		`{"source": "a.cu", "kernel": "k", "parameters": [{"name": "a", "values": [1]}], "grid": 1, "block": 1, "reference": {"source": "../a.cu", "grid": 1, "block": 1}}`: `reference: file "../a.cu": want one in the description's folder`,
	} {
		_, err := spec.Parse([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	for _, c := range []struct{ constraint, want string }{
		{`"elements <= m"`, `constraint elements <= m: "elements <= m", column 13: unknown name m`},
		{`"elements > n"`, "no configuration is left: 0 of 48 valid"},
		{`"b > 0"], "flags": ["-O3", "-Delements=7"`, "flags: -Delements=7: elements is a parameter's macro"},
		{`"b > 0"], "flags": ["-D", "elements"`, "flags: elements: elements is a parameter's macro"},
		{`"b > 0"], "flags": ["--undefine-macro=b"`, "flags: --undefine-macro=b: b is a parameter's macro"},
	} {
		s := read(t, `{"source": "a.cu", "kernel": "k", "sizes": {"n": 8}, "parameters": [{"name": "elements", "range": [1, 8]}, {"name": "b", "range": [1, 6]}],
"constraints": [`+c.constraint+`], "grid": 1, "block": "elements"}`)
		_, err := s.Bind(h100(t))
		require.ErrorContains(t, err, c.want)
	}
}

// Arrays lie in the description's folder, as sources do.
func TestArraysElsewhere(t *testing.T) {
	for _, argument := range []string{"f32:/etc/x.npy", "f32[8]:none,want=../y.npy"} {
		s := read(t, `{"source": "a.cu", "kernel": "k", "parameters": [{"name": "a", "values": [1]}], "grid": 1, "block": 1, "arguments": ["`+argument+`"]}`)
		b, err := s.Bind(h100(t))
		require.NoError(t, err)
		_, err = b.Buffers(0)
		require.ErrorContains(t, err, "argument 1: file ")
		require.ErrorContains(t, err, "want one in the description's folder")
	}
}

// The published spaces have as many configurations as their results list.
func TestT1(t *testing.T) {
	for name, want := range map[string]struct {
		valid      int64
		unrunnable string
		grid       []string
	}{
		"convolution_milo":  {4362, "line 157: argument d_filter lies in constant memory", []string{"ceildiv(ProblemSize_0, (block_size_x)*(tile_size_x))", "ceildiv(ProblemSize_1, (block_size_y)*(tile_size_y))", "1"}},
		"dedispersion_milo": {11130, "line 136: argument shifts lies in constant memory", nil},
		"gemm_milo":         {0, "the kernel is in OpenCL: want CUDA", nil},
	} {
		s, err := spec.Read(filepath.Join("testdata", name+".json"))
		require.NoError(t, err)
		require.ErrorContains(t, s.Unrunnable, want.unrunnable)
		if want.grid != nil {
			require.Equal(t, want.grid, s.Launch.Grid)
		}
		b, err := s.Bind(h100(t))
		require.NoError(t, err)
		if want.valid > 0 {
			require.Equal(t, want.valid, b.Space.Count().Valid, name)
		}
		t.Log(name, b.Space.Count())
	}
}

// A word has a macro, unless no name of C can end with it or a parameter has the name; a
// reference gets those of the words that it defines.
func TestWordsHaveMacros(t *testing.T) {
	b, err := read(t, `{
 "source": "a.cu", "kernel": "k", "grid": 1, "block": 32,
 "parameters": [{"name": "real", "words": ["float", "long double", "half"]}, {"name": "real_half", "values": [7]}, {"name": "load", "words": ["a", "b"]}],
 "reference": {"source": "b.cu", "kernel": "r", "grid": 1, "block": 32, "defines": {"load": "b", "other": 3}}
}`).Bind(h100(t))
	require.NoError(t, err)
	require.Equal(t, []string{"real=long double", "real_half=7", "load=a", "real_float=0", "load_a=1", "load_b=0"}, b.Defines([]int{1, 0, 0}))
	require.Equal(t, []string{"load=b", "other=3", "load_a=0", "load_b=1"}, b.Reference.Defines)
}

// Two words' macros of one name, and words that are no single line of a macro, are refused.
func TestWordsThatAreNoMacros(t *testing.T) {
	for words, want := range map[string]string{
		`{"name": "w", "words": ["a_b"]}, {"name": "w_a", "words": ["b"]}`: "parameters w and w_a: both have a word of the macro w_a_b: rename one",
		`{"name": "w", "words": ["a", "b\u0000"]}`:                         `parameter w: word "b\x00": want one without`,
		`{"name": "w", "words": ["a", "b\n#error"]}`:                       `parameter w: word "b\n#error": want one without`,
		`{"name": "w", "words": ["a", "b\\"]}`:                             `parameter w: word "b\\": want one without`,
	} {
		s := read(t, `{"source": "a.cu", "kernel": "k", "grid": 1, "block": 32, "parameters": [`+words+`]}`)
		_, err := s.Bind(h100(t))
		require.ErrorContains(t, err, want)
	}
	s := read(t, `{"source": "a.cu", "kernel": "k", "grid": 1, "block": 32, "parameters": [{"name": "a", "values": [1]}],
"reference": {"source": "b.cu", "grid": 1, "block": 32, "defines": {"a": "1\n#error"}}}`)
	_, err := s.Bind(h100(t))
	require.ErrorContains(t, err, `reference: a: "1\n#error": want one without`)
}

// A link out of the description's folder is refused as its path would be; one that stays
// in it is none of these.
func TestLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "a.cu"), nil, 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.cu"), nil, 0o666))
	for link, to := range map[string]string{"out.cu": filepath.Join(outside, "a.cu"), "folder": outside, "in.cu": "b.cu", "x.npy": filepath.Join(outside, "a.cu")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	for source, refused := range map[string]bool{"out.cu": true, "folder/a.cu": true, "in.cu": false, "b.cu": false, "missing.cu": false} {
		for _, form := range []string{
			`{"source": "` + source + `", "kernel": "k", "grid": 1, "block": 32, "parameters": [{"name": "a", "values": [1]}]}`,
			`{"source": "b.cu", "kernel": "k", "grid": 1, "block": 32, "parameters": [{"name": "a", "values": [1]}], "reference": {"source": "` + source + `", "kernel": "r", "grid": 1, "block": 32}}`,
		} {
			file := filepath.Join(dir, "space.json")
			require.NoError(t, os.WriteFile(file, []byte(form), 0o666))
			_, err := spec.Read(file)
			if refused {
				require.ErrorContains(t, err, `file "`+source+`": it is linked to one outside: want one in the description's folder`)
			} else {
				require.NoError(t, err)
			}
		}
	}
	file := filepath.Join(dir, "space.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"source": "b.cu", "kernel": "k", "grid": 1, "block": 32, "parameters": [{"name": "a", "values": [1]}], "arguments": ["f32:x.npy"]}`), 0o666))
	s, err := spec.Read(file)
	require.NoError(t, err)
	b, err := s.Bind(h100(t))
	require.NoError(t, err)
	_, err = b.Buffers(0)
	require.ErrorContains(t, err, `argument 1: file "x.npy": it is linked`)
}
