package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/numcheck"
)

func foreign(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join("..", "testdata", "ptx", "foreign", name, "case.json")
}

func TestReadForeignCases(t *testing.T) {
	files, err := filepath.Glob(foreign(t, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		c, err := ReadCase(f)
		require.NoError(t, err)
		require.Len(t, c.Launches, 1)
		require.NotEmpty(t, c.PTX)
		compared := 0
		for _, b := range c.Buffers {
			if b.Want != nil {
				compared++
			}
		}
		require.True(t, compared > 0 || c.Fault != "", "%s checks nothing", f)
	}
}

func TestReadCaseFields(t *testing.T) {
	c, err := ReadCase(foreign(t, "tma_copy_f32_sm90"))
	require.NoError(t, err)
	l := c.Launches[0]
	require.Equal(t, [3]uint32{4, 3, 1}, l.Grid)
	require.EqualValues(t, 4104, l.SharedBytes)
	require.Equal(t, CaseArg{Buffer: -1, Bytes: []byte{100, 0, 0, 0}, Kind: "i32"}, l.Args[2])
	require.Equal(t, CaseArg{Buffer: 2, Kind: "buffer"}, l.Args[4])
	b := c.Buffers[2]
	require.Equal(t, CaseBuffer{Arg: 4, Type: numcheck.U8, Shape: []int64{3072}, Align: 128}, b)
	require.Len(t, c.Buffers[1].Want, int(c.Buffers[1].Size()))

	c, err = ReadCase(foreign(t, "reverse_missing_barrier"))
	require.NoError(t, err)
	require.Equal(t, SharedRace, c.Fault)
}

// writeCase writes a case with a small PTX file and an f32 buffer a.npy.
func writeCase(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("k.ptx", ".version 8.0\n")
	require.NoError(t, WriteNPYFile(filepath.Join(dir, "a.npy"), &Array{"f4", []int64{2, 3}, []byte("abcdefghijklmnopqrstuvwx")}))
	require.NoError(t, WriteNPYFile(filepath.Join(dir, "b.npy"), &Array{"f4", []int64{5}, make([]byte, 20)}))
	write("case.json", text)
	return filepath.Join(dir, "case.json")
}

func TestReadCaseWithLaunches(t *testing.T) {
	c, err := ReadCase(writeCase(t, `{
 "ptx": "k.ptx",
 "buffers": [{"name": "x", "buffer": "a.npy", "type": "f32", "want": "a.npy"}, {"name": "work", "uninitialised": 64, "type": "bf16"}],
 "launches": [
  {"kernel": "one", "grid": [7], "block": [32, 2], "args": [{"ref": "x"}, {"ref": "work", "offset": 64}, {"f16": -2}]},
  {"kernel": "two", "grid": [4, 1, 1], "cluster": [2], "block": [128], "dynamic_shared": 1024, "args": [{"ref": "work"}, {"bytes": "00ff10"}, {"f32": "NaN"}]}
 ]}`))
	require.NoError(t, err)
	require.Len(t, c.Launches, 2)
	require.Equal(t, CaseLaunch{
		Kernel: "one", Grid: [3]uint32{7, 1, 1}, Block: [3]uint32{32, 2, 1},
		Args: []CaseArg{{Buffer: 0, Kind: "buffer"}, {Buffer: 1, Offset: 64, Kind: "buffer"}, {Buffer: -1, Bytes: []byte{0, 0xc0}, Kind: "f16"}},
	}, c.Launches[0])
	require.Equal(t, [3]uint32{2, 1, 1}, c.Launches[1].Cluster)
	require.Equal(t, []byte{0, 0xff, 0x10}, c.Launches[1].Args[1].Bytes)
	require.EqualValues(t, 128, c.Buffers[1].Size())
}

// TestReadCaseStruct: addresses within an argument lie over its bytes.
func TestReadCaseStruct(t *testing.T) {
	c, err := ReadCase(writeCase(t, `{
 "ptx": "k.ptx",
 "buffers": [{"name": "x", "uninitialised": 4, "type": "f32"}],
 "launches": [{"kernel": "one", "grid": [1], "block": [32], "args": [{"bytes": "0100000000000000000000000000000002", "with": [{"at": 8, "ref": "x", "offset": 8}]}]}]}`))
	require.NoError(t, err)
	run := caseRun{dev: newAdder(), c: c}
	run.buffers = []Buffer{{Address: 0x1122334455667700}}
	got, err := run.bytes(&c.Launches[0].Args[0])
	require.NoError(t, err)
	require.Equal(t, Arg{1, 0, 0, 0, 0, 0, 0, 0, 8, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 2}, got)
	require.Equal(t, byte(0), c.Launches[0].Args[0].Bytes[8], "the case stays as it was")
}

func TestReadCaseRefuses(t *testing.T) {
	// %s stands for one argument.
	one := func(arg string) string {
		return `{"ptx": "k.ptx", "kernel": "k", "grid": [1], "block": [32], "args": [` + arg + `]}`
	}
	// Of an argument of 16 bytes with these parts.
	parts := func(with string) string {
		return `{"ptx": "k.ptx", "buffers": [{"name": "x", "uninitialised": 4, "type": "f32"}], "launches": [{"kernel": "k", "grid": [1], "block": [1],
			"args": [{"bytes": "` + strings.Repeat("00", 16) + `", "with": [` + with + `]}]}]}`
	}
	for _, tc := range []struct{ text, want string }{
		{``, "case.json: 1:1: the text ends early"},
		{"{\n \"ptx\": }", "case.json: 2:9: invalid character"},
		{one("") + "x", "text after the case's end"},
		{`{"ptx": 3}`, "1:10: ptx: found number: want a string"},
		{`{"ptx": "k.ptx", "grid": "1"}`, ": grid: found string: want a list of whole numbers"},
		{`{"ptx": "k.ptx", "grid": [1.5]}`, ": grid: found number 1.5: want a whole number"},
		{`{"ptx": "k.ptx", "dynamic_shared": "x"}`, ": dynamic_shared: found string: want a whole number"},
		{`{"ptx": "k.ptx", "launches": [{"block": {}}]}`, ": launches.block: found object: want a list of whole numbers"},
		{`{"ptx": "k.ptx", "launches": 3}`, ": launches: found number: want a list of objects"},
		{`[1]`, ": found array: want an object"},
		{`{"colour": 3}`, `unknown field "colour"`},
		{`{"ptx": "k.ptx", "ptx": "l.ptx"}`, `1:18: key "ptx" twice in one object: want it once`},
		{`{"ptx": "k.ptx", "PTX": "l.ptx"}`, `key "PTX" twice in one object`},
		{`{"ptx": "k.ptx", "tolerance": {"absolute": 0, "relative": 0, "absolute": 1}}`, `key "absolute" twice in one object`},
		{`{"ptx": "k.ptx", "launches": [{"kernel": "k"}, {"kernel": "k", "kernel": "l"}]}`, `key "kernel" twice in one object`},
		{one(`{"i32": 3}, {"i32": 3, "i32": 4}`), `key "i32" twice in one object`},
		{`{"kernel": "k"}`, `no "ptx"`},
		{`{"ptx": "absent.ptx"}`, "absent.ptx"},
		{`{"ptx": "k.ptx"}`, `no "kernel"`},
		{`{"ptx": "k.ptx", "kernel": "k"}`, `no "grid": want one to three numbers`},
		{`{"ptx": "k.ptx", "kernel": "k", "grid": [0], "block": [1]}`, "grid [0]: want numbers from 1"},
		{`{"ptx": "k.ptx", "kernel": "k", "grid": [1, 70000], "block": [1]}`, "want 1 to 65535 in dimension 1"},
		{`{"ptx": "k.ptx", "kernel": "k", "grid": [1], "block": [64, 32]}`, "2048 threads: want at most 1024"},
		{`{"ptx": "k.ptx", "kernel": "k", "grid": [3], "block": [32], "cluster": [2]}`, "want divisors of the grid"},
		{`{"ptx": "k.ptx", "kernel": "k", "grid": [1], "block": [32], "dynamic_shared": -4}`, "dynamic_shared -4"},
		{`{"ptx": "k.ptx", "kernel": "k", "fault": "race"}`, `fault class "race": want one of global-out-of-bounds`},
		{`{"ptx": "k.ptx", "kernel": "k", "tolerance": {"absolute": -1}}`, "tolerance -1"},
		{`{"ptx": "k.ptx", "kernel": "k", "launches": [{}]}`, "want one of them"},
		{`{"ptx": "k.ptx", "launches": []}`, "want at least one"},
		{`{"ptx": "k.ptx", "launches": [{"kernel": "k", "grid": [1], "block": [1], "args": [{"buffer": "a.npy", "type": "f32"}]}]}`, "launches[0]: args[0]: a buffer of its own"},
		{`{"ptx": "k.ptx", "buffers": [{"buffer": "a.npy", "type": "f32"}]}`, "buffers[0]: no name"},
		{`{"ptx": "k.ptx", "buffers": [{"name": "../x", "buffer": "a.npy", "type": "f32"}]}`, `buffers[0]: name "../x": want up to 100 letters`},
		{`{"ptx": "k.ptx", "buffers": [{"name": "a/x", "buffer": "a.npy", "type": "f32"}]}`, `buffers[0]: name "a/x": want up to 100 letters`},
		{`{"ptx": "k.ptx", "buffers": [{"name": "\u001b[31m", "buffer": "a.npy", "type": "f32"}]}`, `buffers[0]: name "\x1b[31m": want up to 100 letters`},
		{one(`{"i32": 2147483648}`), "i32 2147483648: want a whole number from -2147483648 to 2147483647"},
		{one(`{"u8": -1}`), "u8 -1: want a whole number from 0 to 255"},
		{one(`{"i32": 1.5}`), "i32 1.5: want a whole number"},
		{one(`{"f16": 1e6}`), "want at most 65504"},
		{one(`{"f32": "x"}`), "f32 x: want a number"},
		{one(`{"int": 3}`), `int: want one of {"buffer"`},
		{one(`{"i32": 3, "u8": 4}`), "want one of"},
		{one(`{"buffer": 3, "type": "f32"}`), `argument {"buffer": 3, "type": "f32"}: buffer: found number: want a string`},
		{one(`3`), `argument 3: want an object`},
		{one(`{"bytes": "0011", "with": []}`), `"with": [{"at": OFFSET`},
		{one(`{"with": [{"at": 0, "ref": "x"}]}`), `want {"bytes": HEX`},
		{one(`{"bytes": "0011", "with": [{"ref": "x"}]}`), `with[0]: want "at"`},
		{one(`{"bytes": "0011", "with": [{"at": 0, "u8": 3}]}`), "with[0]: want a ref or a tensor_map"},
		{one(`{"bytes": "0011", "with": [{"at": 0, "ref": "x"}]}`), `with[0]: ref "x": no such name`},
		{`{"ptx": "k.ptx", "buffers": [{"name": "x", "uninitialised": 4, "type": "f32"}], "launches": [{"kernel": "k", "grid": [1], "block": [1], "args": [{"bytes": "00112233445566778899", "with": [{"at": 3, "ref": "x"}]}]}]}`, "with[0]: buffer of 8 bytes at 3: want it within the 10 bytes"},
		{parts(`{"at": 4, "ref": "x"}`), "with[0]: buffer at 4: want a multiple of 8"},
		{parts(`{"at": 8, "ref": "x"}, {"at": 0, "ref": "x"}, {"at": 8, "ref": "x"}`), "with[2]: buffer of 8 bytes at 8: with[0] has the 8 bytes at 8"},
		{parts(`{"at": -8, "ref": "x"}`), "with[0]: buffer of 8 bytes at -8: want it within the 16 bytes"},
		{one(`{"bytes": "0g"}`), "want an even number of hexadecimal digits"},
		{one(`{"ref": "x"}`), `args[0]: ref "x": no such name`},
		{one(`{"buffer": "absent.npy", "type": "f32"}`), "args[0]: "},
		{one(`{"buffer": "a.npy", "type": "f16"}`), "a.npy: elements of f4: want f2 for f16"},
		{one(`{"buffer": "a.npy"}`), `args[0]: type ""`},
		{one(`{"buffer": "a.npy", "type": "f32", "want": "b.npy"}`), "b.npy: shape [5]: want the buffer's shape [2 3]"},
		{one(`{"buffer": "a.npy", "type": "f32", "colour": 1}`), `unknown field "colour"`},
		{one(`{"uninitialised": -1, "type": "f32"}`), "uninitialised -1: want a count"},
		{one(`{"uninitialised": 8, "type": "f32", "align": 3}`), "align 3: want a power of two"},
		{one(`{"uninitialised": 9999999999999, "type": "f32"}`), "uninitialised 9999999999999"},
	} {
		_, err := ReadCase(writeCase(t, tc.text))
		require.ErrorContains(t, err, tc.want, tc.text)
		var input *InputError
		require.ErrorAs(t, err, &input)
	}
	_, err := ReadCase(t.TempDir())
	require.ErrorContains(t, err, "a folder")
	_, err = ReadCase(writeCase(t, `{"ptx": "/dev/zero"}`))
	require.ErrorContains(t, err, "/dev/zero: a folder, pipe or device: want a file")
}

func FuzzParseCase(f *testing.F) {
	f.Add(`{"ptx": "case_test.go", "kernel": "k", "grid": [1], "block": [32], "args": [{"i32": 3}, {"ref": "x"}], "buffers": [{"name": "x", "uninitialised": 4, "type": "f32"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCase([]byte(text), ".")
		if err == nil && len(c.Launches) == 0 {
			t.Fatal("a case without a launch")
		}
	})
}

func TestFaultClassNames(t *testing.T) {
	for _, c := range FaultClasses() {
		got, err := ParseFaultClass(string(c))
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
}

func TestProvenanceText(t *testing.T) {
	for p := Measured; p <= Formula; p++ {
		text, err := json.Marshal(p)
		require.NoError(t, err)
		var q Provenance
		require.NoError(t, json.Unmarshal(text, &q))
		require.Equal(t, p, q)
	}
	_, err := json.Marshal(Provenance(0))
	require.Error(t, err)
	var q Provenance
	require.ErrorContains(t, json.Unmarshal([]byte(`"guessed"`), &q), "want measured, counted")
}
