package ptx

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

// corpus is every PTX file of the repository's test data.
func corpus(tb testing.TB) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"testdata/*.ptx", "../../testdata/ptx/*/*.ptx", "../../testdata/ptx/*/*/*.ptx"} {
		names, err := filepath.Glob(pattern)
		require.NoError(tb, err)
		for _, name := range names {
			src, err := os.ReadFile(name)
			require.NoError(tb, err)
			all[name] = src
		}
	}
	require.NotEmpty(tb, all)
	return all
}

// sameTree compares trees but for positions.
var sameTree = cmp.Options{cmpopts.IgnoreTypes(Pos{}), cmpopts.IgnoreFields(Module{}, "File")}

// withoutPositions clears every Pos that v reaches.
func withoutPositions(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			withoutPositions(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			withoutPositions(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Pos]() {
			v.SetZero()
			return
		}
		for i := range v.NumField() {
			if k := v.Field(i).Kind(); k >= reflect.Array && k != reflect.String {
				withoutPositions(v.Field(i))
			}
		}
	}
}

func requireRoundTrip(tb testing.TB, m *Module) {
	tb.Helper()
	text := m.String()
	again, err := Parse("printed", []byte(text))
	if err != nil {
		tb.Fatalf("printed text does not parse: %v\n%s", err, text)
	}
	withoutPositions(reflect.ValueOf(m))
	withoutPositions(reflect.ValueOf(again))
	again.File = m.File
	if !reflect.DeepEqual(m, again) {
		d := cmp.Diff(m, again, sameTree)
		tb.Fatalf("printed text parses to another tree (-first +again):\n%s\n%s", d, text)
	}
	require.Equal(tb, text, again.String())
}

func TestCorpusRoundTrip(t *testing.T) {
	for name, src := range corpus(t) {
		t.Run(filepath.Base(filepath.Dir(name)), func(t *testing.T) {
			m, err := Parse(name, src)
			require.NoError(t, err)
			requireRoundTrip(t, m)
		})
	}
}

func TestParseLimits(t *testing.T) {
	_, err := Parse("t.ptx", make([]byte, MaxSource+1))
	require.EqualError(t, err, "t.ptx: 33554433 bytes of PTX: want at most 33554432")
	_, err = Parse("t.ptx", []byte(head+".global .b8 a[] = {"+strings.Repeat("0,", MaxValues)+"0};"))
	require.ErrorContains(t, err, "initialisers of more than 1048576 values")
	_, err = Parse("t.ptx", []byte(head+".func f() {"+strings.Repeat("ret;", MaxInstructions+1)+"}"))
	require.ErrorContains(t, err, "more than 1048576 instructions: want at most 1048576 in a file")
	for _, text := range []string{".reg .b8 " + strings.Repeat("a,", MaxDeclarations+1), strings.Repeat("{}", MaxDeclarations+1), strings.Repeat("a:", MaxDeclarations+1), strings.Repeat(".pragma \"\";", MaxDeclarations+1)} {
		_, err = Parse("t.ptx", []byte(head+".func f() {"+text))
		require.ErrorContains(t, err, "more than 1048576 declarations, labels and blocks: want at most 1048576 in a file", text[:12])
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range corpus(f) {
		if len(src) < 20_000 {
			f.Add(string(src))
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		m, err := Parse("f", []byte(src))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		requireRoundTrip(t, m)
	})
}

// megabyte is at least 1 MB of compiled PTX.
func megabyte(b *testing.B) []byte {
	var large []byte
	for _, src := range corpus(b) {
		if len(src) > len(large) {
			large = src
		}
	}
	m, err := Parse("b", large)
	require.NoError(b, err)
	all := *m
	for i := 0; len(all.Decls) < 30*len(m.Decls); i++ {
		for _, d := range m.Decls {
			if f, ok := d.(*Function); ok {
				again := *f
				again.Name = fmt.Sprint(f.Name, i)
				all.Decls = append(all.Decls, &again)
			}
		}
	}
	src := []byte(all.String())
	require.Greater(b, len(src), 1_000_000)
	return src
}

func BenchmarkParse(b *testing.B) {
	src := megabyte(b)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("b", src); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParseMemory reports the bytes that a parsed module keeps and that
// its parse allocates, for each instruction.
func BenchmarkParseMemory(b *testing.B) {
	src := megabyte(b)
	var before, parsed, kept runtime.MemStats
	var m *Module
	for b.Loop() {
		m = nil //nolint:ineffassign // lets the collector have it
		runtime.GC()
		runtime.ReadMemStats(&before)
		var err error
		if m, err = Parse("b", src); err != nil {
			b.Fatal(err)
		}
		runtime.ReadMemStats(&parsed)
	}
	runtime.GC()
	runtime.ReadMemStats(&kept)
	require.NoError(b, Resolve(m))
	n := 0
	for _, d := range m.Decls {
		if f, ok := d.(*Function); ok {
			n += len(f.Code)
		}
	}
	each := func(bytes uint64) float64 { return float64(bytes) / float64(n) }
	b.ReportMetric(each(kept.HeapAlloc-before.HeapAlloc), "B/instr")
	b.ReportMetric(each(parsed.TotalAlloc-before.TotalAlloc), "allocated-B/instr")
	b.ReportMetric(each(uint64(len(src))), "text-B/instr")
}

func BenchmarkLoad(b *testing.B) {
	src := megabyte(b)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load("b", src); err != nil {
			b.Fatal(err)
		}
	}
}

func TestPrintGrammar(t *testing.T) {
	src, err := os.ReadFile("testdata/grammar.ptx")
	require.NoError(t, err)
	m, err := Parse("grammar.ptx", src)
	require.NoError(t, err)
	golden(t, "testdata/grammar.golden", m.String())
}

var update = flag.Bool("update", false, "write golden files anew")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run with -update if this is meant")
}

func TestParseGrammarTree(t *testing.T) {
	src, err := os.ReadFile("testdata/grammar.ptx")
	require.NoError(t, err)
	m, err := Parse("grammar.ptx", src)
	require.NoError(t, err)
	require.Equal(t, Version{9, 0}, m.Version)
	require.Equal(t, []string{"sm_90a", "debug"}, m.Targets)
	variables := map[string]*Variable{}
	var kernel *Function
	for _, d := range m.Decls {
		switch d := d.(type) {
		case *Variable:
			variables[d.Name] = d
		case *Function:
			kernel = d
		}
	}
	value := func(name string) int64 { return int64(variables[name].Init.Value.Value) }
	require.EqualValues(t, (1<<4)+3*(7-2)^(-1)&0xFF, value("expression"))
	require.EqualValues(t, -1, value("choice"))
	require.EqualValues(t, -1<<63, value("least64"))
	require.EqualValues(t, 4, value("pointer"))
	require.Equal(t, []int64{2, 3}, variables["table"].Dims)
	require.EqualValues(t, 24, variables["table"].Size())
	require.EqualValues(t, 8*16, variables["vectors"].Size())
	require.EqualValues(t, 16, variables["vectors"].Alignment())
	for _, v := range variables["halves"].Init.List[1:] {
		require.Equal(t, 0.5, math.Float64frombits(v.Value.Value))
	}
	require.True(t, kernel.Kernel)
	require.Equal(t, SpaceGlobal, kernel.Params[0].PtrSpace)
	require.Equal(t, 16, kernel.Params[0].PtrAlign)
	require.EqualValues(t, 24, kernel.Params[3].Size())
	d, ok := kernel.Directive("maxntid")
	require.True(t, ok)
	require.Equal(t, []int64{128, 2, 1}, d.Values)

	require.NoError(t, Resolve(m))
	inlined := kernel.Code[2]
	require.Equal(t, "mov", inlined.Name)
	require.Equal(t, Loc{Pos: inlined.Loc.Pos, File: 2, Line: 7, Function: "$name", FunctionOffset: 12, Inlined: true, AtFile: 1, AtLine: 10, AtCol: 3}, *inlined.Loc)
	require.Equal(t, "cp.async.bulk.tensor", kernel.Code[len(kernel.Code)-6].Name)
}

func TestParseErrors(t *testing.T) {
	body := func(s string) string { return head + ".entry k() {\n" + s + "\n}" }
	for src, want := range map[string]string{
		"":                                         "1:1: found the end of the file: want `.version` as the first directive",
		".target sm_80":                            "1:1: found .target: want `.version` as the first directive",
		".version 9\n":                             "1:10: found '9': want a version such as 9.0",
		".version 9.0\n.entry":                     "2:1: found .entry: want `.target` after `.version`",
		head + "kernel":                            "4:1: found 'kernel': want a directive such as `.visible .entry`",
		head + ".version 8.0":                      "4:1: second .version: want one, at the top",
		head + ".global x;":                        "4:9: found 'x': want a type such as .b32",
		head + ".global .b32 .b32 x;":              "4:14: found .b32: want one type such as .b32, then a name",
		head + ".global .align 3 .b32 x;":          "4:16: alignment 3: want a power of two",
		head + ".global .b32 x[99999999999999];":   "4:16: extent 99999999999999: want a whole number from 0 to 1099511627776",
		head + ".global .b32 x[1048576][1048576];": "4:25: variable x has more than 2^40 bytes",
		head + ".global .b8 x[1099511627776][1048576];":   "4:30: variable x has more than 2^40 bytes",
		head + ".global .b32 x = 1 / 0;":                  "4:20: constant expression with 1 and 0: division by zero or no such operator",
		head + ".global .b32 x = 0x;":                     `4:18: number "0x": want decimal, 0x, 0b or octal digits`,
		head + ".global .b32 x = 09;":                     `4:18: number "09"`,
		head + ".global .b32 x = 0f3F8;":                  `4:18: number "0f3F8"`,
		head + ".global .b32 x = 99999999999999999999;":   `4:18: number "99999999999999999999"`,
		head + ".global .b32 x = \"a\";":                  `4:18: found "a": want a constant`,
		head + ".global .b32 x = ~1.5;":                   "4:18: ~1.5: want a whole number",
		head + ".file 1 \"a":                              "4:9: string without its end",
		head + "/* no end":                                "4:1: comment without its end: want */",
		".version 2.2\n.target sm_20\n.address_size 64\n": "3:1: .address_size needs PTX 2.3: the module is PTX 2.2",
		head + ".section .x { ":                           "4:15: section .x without its end: want '}'",
		head + ".entry k() .maxntid {":                    "4:21: found '{': want a constant",
		head + ".entry k() .maxtid 1 {":                   "4:12: found .maxtid: want a directive such as .maxntid, or the body",
		head + ".entry (.reg .b32 r) k() {}":              "4:8: found '(': want the kernel's name: a kernel returns nothing",
		head + ".entry k() { ret;":                        "4:12: block without its end: want '}'",
		body("ret"):                                       "6:1: found '}': want an operand, or ';' to end ret",
		body("add.s32 a, , b;"):                           "5:12: found ',': want a constant",
		body("ld.b32 a, [];"):                             "5:12: found ']': want an operand",
		body("mov.b32 a, {b;"):                            "5:14: found ';': want ',' or '}'",
		body("mov.b32 a, b.q;"):                           "5:13: found .q: want a member such as .x",
		body("@_ ret;"):                                   "5:2: found '_': want a name",
		body("\x01"):                                      `5:1: byte '\x01': no PTX begins with it`,
		body("x: .callprototype f;"):                      "prototype of \"f\": want _ in place of a name",
		body(".reg .b32 r<0>;"):                           "5:13: number of registers 0: want a whole number from 1 to",
		body(".loc 1 2 3, elsewhere 4"):                   `"elsewhere" in .loc: want function_name or inlined_at`,
		body("mov.b32 a, " + strings.Repeat("(", 500)):    "nested deeper than 100",
		body(strings.Repeat("{", 500)):                    "nested deeper than 100",
	} {
		_, err := Parse("t.ptx", []byte(src))
		require.ErrorContains(t, err, want, src)
		require.True(t, strings.HasPrefix(err.Error(), "t.ptx:"), err)
	}
}

// TestRemainder: % is an operator where no name can begin with it, as for ptxas.
func TestRemainder(t *testing.T) {
	const head = ".version 9.0\n.target sm_90a\n.address_size 64\n"
	for text, want := range map[string]uint64{
		"5 % 2": 1, "(7 % 4) + 1": 4, "7% 3": 1, "7 %(4)": 3, "2 + 9 % 5 * 3": 14, "7U % 4": 3,
	} {
		m, err := Parse("", []byte(head+".visible .entry k() { .reg .b32 %r; mov.u32 %r, "+text+"; ret; }"))
		require.NoError(t, err, text)
		require.NoError(t, Resolve(m), text)
		require.Equal(t, want, m.Decls[0].(*Function).Code[0].Operands[1].Value, text)
	}
	for _, text := range []string{"7 %2", "7 %r", "7 % 0", "7 %"} {
		_, err := Parse("", []byte(head+".visible .entry k() { .reg .b32 %r; mov.u32 %r, "+text+"; ret; }"))
		require.Error(t, err, text)
	}
}
