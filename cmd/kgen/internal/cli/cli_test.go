package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestExit(t *testing.T) {
	base := errors.New("base")
	tests := []struct {
		name string
		err  error
		code int
		want string
	}{
		{"nothing", nil, 0, ""},
		{"failure", base, 1, "kgen: base\n"},
		{"usage", usagef("size %d: want 1 or more", 0), 2, "kgen: size 0: want 1 or more\n"},
		{"wrapped usage", fmt.Errorf("reading: %w", usage(base)), 2, "kgen: reading: base\n"},
		{"wrong answer", wrong(base), 3, "kgen: base\n"},
		{"several lines", errors.Join(base, errors.New("two\n\nthree")), 1, "kgen: base; two; three\n"},
		{"interrupted", fmt.Errorf("tuning: %w", context.Canceled), 1, "kgen: interrupted\n"},
		{"reader gone", fmt.Errorf("standard output: %w", syscall.EPIPE), 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stderr strings.Builder
			a := &app{err: &stderr}
			require.Equal(t, tt.code, a.exit(tt.err))
			require.Equal(t, tt.want, stderr.String())
		})
	}
	require.NoError(t, usage(nil))
	require.NoError(t, wrong(nil))
	require.ErrorIs(t, usage(base), base)
}

// Main says what it is for without arguments, and keeps results and words apart.
func TestMainStreams(t *testing.T) {
	var out, err strings.Builder
	require.Equal(t, 0, Main(nil, strings.NewReader(""), &out, &err))
	require.Contains(t, out.String(), "Generate, check and tune GPU kernels")
	require.Empty(t, err.String())
	require.Equal(t, 2, Main([]string{"\x00", "--\xff"}, strings.NewReader(""), io.Discard, io.Discard))
}

func TestPositional(t *testing.T) {
	c := &cobra.Command{Use: "run"}
	tests := []struct {
		names []string
		args  string
		want  string
	}{
		{nil, "", ""},
		{nil, "x", `run: unexpected argument "x": it takes none`},
		{[]string{"CASE.json"}, "", "run: missing CASE.json"},
		{[]string{"CASE.json"}, "a", ""},
		{[]string{"CASE.json"}, "a b", `run: unexpected argument "b" after CASE.json`},
		{[]string{"[NAME]"}, "", ""},
		{[]string{"[NAME]"}, "a", ""},
		{[]string{"[NAME]"}, "a b", `run: unexpected argument "b" after [NAME]`},
		{[]string{"FILE..."}, "", "run: missing FILE..."},
		{[]string{"FILE..."}, "a b c", ""},
	}
	for _, tt := range tests {
		err := positional(tt.names...)(c, strings.Fields(tt.args))
		if tt.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, tt.want)
		require.Equal(t, exitUsage, exitCode(err))
	}
}

func TestFlagErrors(t *testing.T) {
	tests := []struct{ args, want string }{
		{"--m=1.5", `--m "1.5": want a whole number`},
		{"--m=99999999999999999999", `--m "99999999999999999999": want a whole number`},
		{"--scale x", `--scale "x": want a number`},
		{"--budget 5", `--budget "5": want a duration such as 90s or 10m`},
		{"--m", "flag needs an argument: --m"},
		{"--budgt=1s", "unknown flag --budgt for tune (did you mean --budget?)"},
		{"-mz", "unknown flag -m for tune"},
		{"--=3", "bad flag syntax: --=3"},
	}
	for _, tt := range tests {
		c := &cobra.Command{Use: "tune", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
		c.SetFlagErrorFunc(flagError)
		c.Flags().Int("m", 1, "")
		c.Flags().Float64("scale", 1, "")
		c.Flags().Duration("budget", 0, "")
		c.SetArgs(strings.Fields(tt.args))
		err := c.Execute()
		require.EqualError(t, err, tt.want)
		require.Equal(t, exitUsage, exitCode(err))
	}
}

func TestNear(t *testing.T) {
	names := []string{"tune", "emit", "run", "roofline", "kernels", "gpus", "flashattn", "gemm"}
	tests := []struct {
		name string
		want []string
	}{
		{"tnue", []string{"tune"}},
		{"TUNE", []string{"tune"}},
		{"flash", []string{"flashattn"}},
		{"flashatn", []string{"flashattn"}},
		{"rooflines", []string{"roofline"}},
		{"zzz", nil},
		{"", nil},
		{strings.Repeat("x", 1000), nil},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, near(tt.name, names), tt.name)
	}
	require.Equal(t, ": want one of a, b", didYouMean("zzz", []string{"a", "b"}))
	require.Empty(t, didYouMean("zzz", make([]string, 100)))
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"gpu", "gup", 1}, {"abc", "abc", 0}}
	for _, tt := range tests {
		require.Equal(t, tt.want, distance(tt.a, tt.b), "%s %s", tt.a, tt.b)
		require.Equal(t, tt.want, distance(tt.b, tt.a), "%s %s", tt.b, tt.a)
	}
}

func TestWriterKeepsTheFirstError(t *testing.T) {
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	out := &writer{w: w}
	fmt.Fprintln(out, "lost")
	require.ErrorIs(t, out.err, io.ErrClosedPipe)
	out.w = io.Discard
	fmt.Fprintln(out, "lost too")
	require.ErrorIs(t, out.err, io.ErrClosedPipe)
}

// Lines of a table end where their last word does, however they are written.
func TestTableHasNoTrailingBlanks(t *testing.T) {
	var b bytes.Buffer
	a := &app{out: &writer{w: &b}}
	w := a.table()
	fmt.Fprint(w, "A\tB B\tLONG\t\nlonger  one\t\t\t\n\t\tx\t\n")
	require.NoError(t, w.Flush())
	require.Equal(t, "A            B B  LONG\nlonger  one\n                  x\n", b.String())

	b.Reset()
	trim := &trimmer{w: &b}
	for _, part := range []string{"a  ", " ", "b ", "\n ", "\n", " c"} {
		n, err := trim.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, "a   b\n\n c", b.String())
}

func TestPaint(t *testing.T) {
	a := &app{out: &writer{w: io.Discard}}
	require.Equal(t, "text", a.paint("32", "text"), "no terminal, no colour")
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, a\ttab\nand a line": "plain text, a\ttab\nand a line",
		"\x1b[31mred\x07":                `\x1b[31mred\a`,
		"c1 \u009b2J, del \x7f":          `c1 \u009b2J, del \x7f`,
		"turned \u202eround":             `turned \u202eround`,
		"no UTF-8 \xff, a true \ufffd":   "no UTF-8 \\xff, a true \ufffd",
	} {
		require.Equal(t, want, visible(in))
	}
	require.Equal(t, `a: \x1b[2J; b`, oneLine(errors.Join(errors.New("a: \x1b[2J"), errors.New("b"))))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestCheckWritable(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, checkWritable(dir))
	require.NoError(t, checkWritable(filepath.Join(dir, "not", "yet", "there")))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, checkWritable(file), "is a file")
	require.Error(t, checkWritable(filepath.Join(file, "under")))
}

func TestParseDriverRelease(t *testing.T) {
	tests := []struct{ text, want string }{
		{"NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb 26 01:35:56 UTC 2025\n", "570.124.06"},
		{"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@a)\n", "580.65.06"},
		{"", ""},
		{"something else", ""},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, parseDriverRelease(tt.text))
	}
}

// Programs of other code are told apart: by version and revision, or by the file where
// these say nothing.
func TestCodeOf(t *testing.T) {
	require.Equal(t, "v1.2.3", codeOf(buildInfo{Version: "v1.2.3"}, "vm"))
	require.Equal(t, "devel abc", codeOf(buildInfo{Version: "devel", Revision: "abc"}, "vm"))
	require.Equal(t, "devel", codeOf(buildInfo{Version: "devel"}, "cuda"))
	require.Equal(t, "devel build "+buildDigest(), codeOf(buildInfo{Version: "devel"}, "vm"))
	require.Equal(t, "devel abc build "+buildDigest(), codeOf(buildInfo{Version: "devel", Revision: "abc", Modified: true}, "vm"))
	require.Len(t, buildDigest(), 64)
}
