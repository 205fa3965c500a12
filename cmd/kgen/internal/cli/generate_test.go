package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/gopkg"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
)

// consumer is a program that uses a generated package: it plans what standard input
// asks for and prints the launches.
const consumer = `package main

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"

	"consumer/kernels"
)

type request struct {
	Family    string
	Device    kernels.Device
	Shape     map[string]int
	Args      map[string]any
	Workspace []uint64
	Len       []int32
}

type launch struct {
	kernels.Step
	Params []byte
}

type packer interface {
	Check(*kernels.Plan, []uint64) error
	Pack(*kernels.Plan, int, []uint64) ([]byte, error)
}

func main() {
	var r request
	check(json.NewDecoder(os.Stdin).Decode(&r))
	var p *kernels.Plan
	var a packer
	var err error
	switch r.Family {
	case "flashattn":
		p, err = kernels.PlanFlashAttn(r.Device, shape[kernels.FlashAttnShape](r))
		a = args[kernels.FlashAttnArgs](r)
	case "gemm":
		p, err = kernels.PlanGemm(r.Device, shape[kernels.GemmShape](r))
		a = args[kernels.GemmArgs](r)
	case "layernorm":
		p, err = kernels.PlanLayerNorm(r.Device, shape[kernels.LayerNormShape](r))
		a = args[kernels.LayerNormArgs](r)
	case "paged":
		s := shape[kernels.PagedShape](r)
		if p, err = kernels.PlanPaged(r.Device, s); err == nil && r.Len != nil {
			err = s.CheckLen(r.Len)
		}
		a = args[kernels.PagedArgs](r)
	case "misuse":
		misuse()
		return
	case "paged-append":
		s := shape[kernels.PagedAppendShape](r)
		if p, err = kernels.PlanPagedAppend(r.Device, s); err == nil && r.Len != nil {
			err = s.CheckLen(r.Len)
		}
		a = args[kernels.PagedAppendArgs](r)
	}
	if errors.Is(err, kernels.ErrUnsupported) != (err != nil && strings.HasPrefix(err.Error(), "not supported: ")) {
		panic(err) // so that what is printed tells
	}
	check(err)
	workspace := r.Workspace[:len(p.Workspace)]
	check(a.Check(p, workspace))
	var out []launch
	for i, s := range p.Steps {
		b, err := a.Pack(p, i, workspace)
		check(err)
		out = append(out, launch{s, b})
	}
	check(json.NewEncoder(os.Stdout).Encode(out))
}

func shape[S any](r request) S {
	var s S
	for name, n := range r.Shape {
		reflect.ValueOf(&s).Elem().FieldByName(name).SetInt(int64(n))
	}
	return s
}

func args[A any](r request) *A {
	a := new(A)
	b, err := json.Marshal(r.Args)
	check(err)
	check(json.Unmarshal(b, a))
	return a
}

func check(err error) {
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}
`

// launched is what the consumer prints of a step.
type launched struct {
	Image      []byte
	Entry      string
	Grid       [3]uint32
	Block      [3]uint32
	Cluster    [3]uint32
	Shared     uint32
	Early      bool
	Offsets    []int
	Sizes      []int
	TensorMaps []struct {
		Offset            int
		DataType, Swizzle int
		Dims, Strides     []uint64
		Box               []uint32
	}
	Params []byte
}

// encode puts the virtual machine's tensor maps into a step's parameters.
func (s *launched) encode(t *testing.T, dev bench.Device) {
	t.Helper()
	for _, m := range s.TensorMaps {
		arg, err := dev.TensorMap(&bench.TensorMap{
			Type: map[int]ptx.Type{6: ptx.F16, 9: ptx.BF16}[m.DataType], Swizzle: []int{0, 32, 64, 128}[m.Swizzle],
			Address: binary.LittleEndian.Uint64(s.Params[m.Offset:]), Dims: m.Dims, Strides: m.Strides, Box: m.Box,
		})
		require.NoError(t, err)
		copy(s.Params[m.Offset:], arg)
	}
}

// The generated package of four families compiles everywhere without cgo, and its plans
// run to what the references expect, for sizes that its kernels were not tuned for.
func TestGeneratedPackageRuns(t *testing.T) {
	dir := t.TempDir()
	program := buildConsumer(t, dir, []string{"flashattn", "gemm", "layernorm", "paged"}, "a100,h100", "--rule", layerNormRule(t))
	requireRefusals(t, program)
	requireBestReason(t, program)
	requireMisuseRefused(t, program)
	for _, tt := range []struct {
		family string
		flags  map[string]string
		gpu    string
		maps   int  // tensor maps of all steps, if the device encodes them
		left   bool // numbers are left at 0, which means those of the flags
	}{
		{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "200"}, "h100", 4, true}, // Q, K, V and O
		{"flashattn", map[string]string{"batch": "2", "heads": "4", "kv-heads": "2", "seq": "70", "seq-kv": "90"}, "a100", 0, false},
		{"gemm", map[string]string{"m": "70", "n": "72", "k": "40"}, "h100", 3, false},
		{"gemm", map[string]string{"m": "70", "n": "77", "k": "33"}, "a100", 0, false},
		{"layernorm", map[string]string{"rows": "3", "cols": "2000"}, "a100", 0, true},
		{"layernorm", map[string]string{"rows": "3", "cols": "777", "dropout": "0.5"}, "rtx4090", 0, false},
		{"layernorm", map[string]string{"rows": "2", "cols": "8000"}, "h100", 0, true},
		{"layernorm", map[string]string{"rows": "1", "cols": "20001"}, "a100", 0, false},
		{"paged", map[string]string{"batch": "3", "context": "300", "ragged": "true"}, "a100", 0, false},
		{"paged", map[string]string{"batch": "1", "context": "1100", "heads": "8", "kv-heads": "2", "query": "3"}, "h100", 0, true},
		{"paged-append", map[string]string{"batch": "3", "context": "300", "ragged": "true", "query": "40"}, "a100", 0, false},
	} {
		t.Run(tt.family, func(t *testing.T) {
			gpu := must(target.Lookup(tt.gpu))
			f := must(kernelFamily(tt.family))
			for _, encodes := range []bool{false, true} {
				if maps := runGenerated(t, program, f, must(f.Problem(tt.flags, gpu)), gpu, encodes, tt.left); encodes {
					require.Equal(t, tt.maps, maps)
				} else {
					require.Zero(t, maps)
				}
				if tt.maps == 0 {
					break // the same again
				}
			}
		})
	}
}

// A package that was made so has kernels with tensor maps for a launcher that cannot encode
// them.
func TestGeneratedPackageMakesTensorMaps(t *testing.T) {
	program := buildConsumer(t, t.TempDir(), []string{"flashattn", "gemm", "layernorm", "paged"}, "h100", "--maps", "prologue")
	gpu := must(target.Lookup("h100"))
	for family, flags := range map[string]map[string]string{
		"gemm": {"m": "70", "n": "72", "k": "40"}, "flashattn": {"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "200"},
	} {
		f := must(kernelFamily(family))
		p := must(f.Problem(flags, gpu))
		require.Zero(t, runGenerated(t, program, f, p, gpu, false, false))
		require.Positive(t, runGenerated(t, program, f, p, gpu, true, false))
	}
	device := map[string]any{"Name": "NVIDIA H100 80GB HBM3", "Major": 9, "Driver": 13000}
	request := map[string]any{"Family": "gemm", "Device": device, "Shape": map[string]any{"M": 70, "N": 72, "K": 40}, "Args": map[string]any{"A": 8, "B": 4096, "C": 4096}, "Workspace": []uint64{4096}}
	_, refused := askConsumer(t, program, request)
	require.Contains(t, refused, "a at 0x8: want an address that is a multiple of 16")
	device["Driver"] = 12040 // whose strides are sixteenths
	request["Args"] = map[string]any{"A": 4096, "B": 4096, "C": 4096}
	request["Workspace"] = nil
	out, refused := askConsumer(t, program, request)
	require.Empty(t, refused)
	var steps []launched
	require.NoError(t, json.Unmarshal(out, &steps))
	require.Len(t, steps, 1)
}

func buildConsumer(t *testing.T, dir string, families []string, gpus string, more ...string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module consumer\n\ngo 1.24\n"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(consumer), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "misuse.go"), []byte(misuser), 0o666))
	var stderr bytes.Buffer
	args := append([]string{"generate"}, families...)
	args = append(args, "--gpu", gpus, "-o", filepath.Join(dir, "kernels"))
	args = append(args, more...)
	t.Setenv("XDG_STATE_HOME", dir)
	require.Equal(t, 0, Main(args, nil, &stderr, &stderr), stderr.String())
	run := func(os, name string, args ...string) {
		c := exec.Command("go", append([]string{name}, args...)...)
		c.Dir = dir
		c.Env = append(c.Environ(), "CGO_ENABLED=0", "GOOS="+os, "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
		out, err := c.CombinedOutput()
		require.NoError(t, err, "GOOS=%s go %s: %s", os, name, out)
	}
	for _, system := range []string{"windows", "darwin"} {
		run(system, "vet", "./...")
	}
	program := filepath.Join(dir, "consumer")
	run("", "vet", "./...")
	run("", "build", "-o", program, ".")
	return program
}

// runGenerated lets the consumer plan a problem, with or without its numbers left at 0,
// launches that on the virtual machine and compares all outputs with the reference. It returns the number of tensor maps.
func runGenerated(t *testing.T, program string, f *family.Family, p family.Problem, gpu *target.GPU, encodes, left bool) int {
	t.Helper()
	dev := must(vm.New(vm.Options{GPU: gpu}))
	defer dev.Close()
	data := must(family.NewData(p.Args(), 1))
	buffers := map[string]bench.Buffer{}
	args := map[string]any{}
	sizes := map[string]int{} // by symbol
	params := must(p.Program(must(p.Default(gpu)))).Params
	for i, a := range p.Args() {
		switch {
		case !a.IsScalar():
			b := must(dev.Alloc(int64(len(data[a.Name].Bytes)), 0))
			require.NoError(t, dev.Write(b, 0, data[a.Name].Bytes))
			buffers[a.Name] = b
			args[goName(a.Name)] = b.Address
			for d, dim := range params[i].Type.Dims {
				sizes[dim.Sym] = a.Dims[d]
			}
		case left:
		case a.Dropout > 0:
			args["Dropout"] = a.Dropout
		case a.Elem.IsFloat():
			args[goName(a.Name)] = float32(a.Float)
		default:
			args[goName(a.Name)] = a.Int
		}
	}
	shape := map[string]int{}
	for _, s := range f.Sizes {
		shape[s.Field] = sizes[s.Symbol]
	}
	var workspace []uint64
	for range 3 {
		workspace = append(workspace, must(dev.Alloc(1<<22, 0)).Address)
	}
	out, refused := askConsumer(t, program, map[string]any{
		"Family": f.Name, "Shape": shape, "Args": args, "Workspace": workspace,
		"Device": map[string]any{"Name": gpu.Name, "Major": gpu.CC.Major, "Minor": gpu.CC.Minor, "Driver": 13000, "SharedOptin": gpu.Limits().SharedPerBlock, "TensorMaps": encodes},
	})
	require.Empty(t, refused)
	var steps []launched
	require.NoError(t, json.Unmarshal(out, &steps))
	maps := 0
	for i, s := range steps {
		require.Equal(t, i > 0 && gpu.CC.AtLeast(9, 0), s.Early)
		maps += len(s.TensorMaps)
		s.encode(t, dev)
		m := must(dev.Load(t.Context(), s.Entry+".ptx", bytes.TrimSuffix(s.Image, []byte{0})))
		l := bench.Launch{Grid: s.Grid, Block: s.Block, Cluster: s.Cluster, SharedBytes: int64(s.Shared), Early: s.Early}
		for i, at := range s.Offsets {
			l.Args = append(l.Args, s.Params[at:at+s.Sizes[i]])
		}
		r, err := dev.Launch(t.Context(), m, s.Entry, l)
		require.NoError(t, err)
		require.Empty(t, r.Faults)
	}
	for _, a := range p.Args() {
		if !a.Out {
			continue
		}
		require.NoError(t, dev.Read(buffers[a.Name], 0, data[a.Name].Bytes))
		require.NoError(t, data[a.Name].Check(a.Whole(), must(p.Expect(data, a.Whole()))))
	}
	return maps
}

// askConsumer runs the consumer: what it prints, or what it refuses the request with.
func askConsumer(t *testing.T, program string, request map[string]any) (out []byte, refused string) {
	t.Helper()
	c := exec.Command(program)
	c.Stdin = bytes.NewReader(must(json.Marshal(request)))
	out, err := c.Output()
	failed := &exec.ExitError{}
	if errors.As(err, &failed) {
		require.Equal(t, 1, failed.ExitCode(), "%s", failed.Stderr)
		return nil, string(failed.Stderr)
	}
	require.NoError(t, err)
	return out, ""
}

// requireRefusals asks the consumer for what no kernel serves.
func requireRefusals(t *testing.T, program string) {
	t.Helper()
	const large = 1<<31 - 1<<16 // the largest of any size
	type sizes = map[string]int
	pages := func(name string, n int) sizes {
		s := sizes{"Batch": 2, "Query": 1, "KVHeads": 1, "Entries": 3, "Pages": 8}
		s[name] = n
		return s
	}
	for _, tt := range []struct {
		family  string
		shape   sizes
		dropout float64
		want    string
		len     []int32 // if not nil, of the sequences
	}{
		{"layernorm", sizes{"Rows": 0, "Cols": 8}, 0, "Rows 0: want 1 to 2147418112", nil},
		{"layernorm", sizes{"Rows": large + 1, "Cols": 8}, 0, "Rows 2147418113: want 1 to 2147418112", nil},
		{"layernorm", sizes{"Rows": 8, "Cols": 0}, 0, "Cols 0: want 1 to 1048576", nil},
		{"layernorm", sizes{"Rows": 8, "Cols": -8}, 0, "Cols -8: want 1 to 1048576", nil},
		{"layernorm", sizes{"Rows": 8, "Cols": 1<<20 + 1}, 0, "Cols 1048577: want 1 to 1048576", nil},
		{"layernorm", sizes{"Rows": math.MaxInt, "Cols": math.MaxInt}, 0, "Rows 9223372036854775807: want", nil},
		{"layernorm", sizes{"Rows": math.MinInt, "Cols": 8}, 0, "Rows -9223372036854775808: want", nil},
		{"layernorm", sizes{"Rows": 8, "Cols": 8}, 1, "Dropout 1: want a probability", nil},
		{"layernorm", sizes{"Rows": 8, "Cols": 8}, -0.5, "Dropout -0.5: want a probability", nil},
		{"gemm", sizes{"M": 1 << 25, "N": 1 << 25, "K": 8}, 0, "tiles: want at most 2147483647", nil},
		{"gemm", sizes{"M": 8, "N": 8, "K": large}, 0, "stride 0 of a of 2147418112: want 0 to 1073741823", nil},
		{"flashattn", sizes{"Batch": large, "Seq": large, "SeqKV": large, "KVHeads": large, "Heads": large}, 0, "more bytes than 64 bits count", nil},
		{"flashattn", sizes{"Batch": 1 << 16, "Seq": 128, "SeqKV": 128, "KVHeads": 1, "Heads": 1 << 16}, 0, "tiles: want at most 2147483647", nil},
		{"paged", sizes{"Batch": large, "Query": large, "KVHeads": large, "Entries": large, "Pages": large}, 0, "more bytes than 64 bits count", nil},
		{"paged", sizes{"Batch": 1, "Query": 1 << 29, "KVHeads": 1, "Entries": 1, "Pages": 1}, 0, "sizes too large for indices of 32 bits", nil},
		{"paged", pages("Batch", 0), 0, "Batch 0: want 1 to", nil},
		{"paged", pages("Query", -1), 0, "Query -1: want 1 to", nil},
		{"paged", pages("KVHeads", 0), 0, "KVHeads 0: want 1 to", nil},
		{"paged", pages("Entries", 0), 0, "Entries 0: want 1 to", nil},
		{"paged", pages("Pages", 0), 0, "Pages 0: want 1 to", nil},
		{"paged", pages("Entries", 1<<27), 0, "sizes too large for indices of 32 bits: 16 * E + ", nil},
		{"paged", pages("Batch", 2), 0, "Len of 3 numbers: want 2", []int32{1, 2, 3}},
		{"paged", pages("Batch", 2), 0, "Len[1] is -1: want 0 to 48", []int32{0, -1}},
		{"paged", pages("Batch", 2), 0, "Len[0] is 49: want 0 to 48", []int32{49, 48}},
		{"paged", pages("Batch", 2), 0, "address 0: want one on the device", []int32{0, 48}},
		{"paged-append", pages("Entries", 0), 0, "Entries 0: want 1 to", nil},
		{"paged-append", pages("Batch", 2), 0, "Len[0] is 49: want 0 to 48", []int32{49, 48}},
		{"paged-append", sizes{"Batch": 1, "Query": 1 << 20, "KVHeads": 1 << 12, "Entries": 1, "Pages": 1}, 0, "sizes too large for indices of 32 bits", nil},
	} {
		args := map[string]any{"Dropout": tt.dropout}
		for _, name := range []string{"X", "Residual", "Weight", "Bias", "Y", "Sum", "Mean", "Rstd"} {
			args[name] = 1 << 20
		}
		_, refused := askConsumer(t, program, map[string]any{
			"Family": tt.family, "Shape": tt.shape, "Args": args, "Device": map[string]any{"Major": 8}, "Len": tt.len,
			"Workspace": []uint64{1 << 20, 1 << 21, 1 << 22}, // of what is not refused before
		})
		require.Contains(t, refused, tt.want, "%s %v", tt.family, tt.shape)
		unsupported := slices.ContainsFunc([]string{"tiles: want", "stride 0", "32 bits"}, func(s string) bool { return strings.Contains(tt.want, s) })
		require.Equal(t, unsupported, strings.HasPrefix(refused, "not supported: "), refused)
	}
}

// requireBestReason asks for what no kernel of a package for A100 and H100 serves, and for
// a shape that is none, on devices by the names that drivers give.
func requireBestReason(t *testing.T, program string) {
	t.Helper()
	type m = map[string]any
	for _, tt := range []struct {
		device, shape m
		want          string
	}{
		{m{"Name": "NVIDIA A100-SXM4-80GB", "Major": 8}, m{"M": 0, "N": 8, "K": 8}, `^M 0: want 1 to 2147418112$`},
		{m{"Name": "Tesla T4", "Major": 7, "Minor": 5}, m{"M": 0, "N": 8, "K": 8}, `^M 0: want 1 to 2147418112$`},
		{m{"Name": "Tesla T4", "Major": 7, "Minor": 5}, m{"M": 8, "N": 8, "K": 8}, `^not supported: gemm_a100_sxm4_80: compute capability 7.5: want 8.0 or newer$`},
		{m{"Name": "NVIDIA A100-SXM4-80GB", "Major": 8}, m{"M": 1 << 25, "N": 1 << 25, "K": 8}, `^not supported: gemm_a100_sxm4_80: .* tiles: want at most`},
		{m{"Name": "NVIDIA H100 80GB HBM3", "Major": 9}, m{"M": 1 << 25, "N": 1 << 25, "K": 8}, `^not supported: gemm_h100_sxm5_80: .* tiles: want at most`},
	} {
		_, refused := askConsumer(t, program, m{"Family": "gemm", "Device": tt.device, "Shape": tt.shape})
		require.Regexp(t, tt.want, refused, "%v", tt.device)
	}
}

func goName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func TestOurs(t *testing.T) {
	require.True(t, gopkg.Ours([]byte("// Code generated by kgen v1.2.3; DO NOT EDIT.\n\npackage x\n")))
	for _, text := range []string{"", "package x\n", "// Code generated by stringer; DO NOT EDIT.\n", "// Code generated by kgen v1; DO NOT EDIT\n"} {
		require.False(t, gopkg.Ours([]byte(text)), text)
	}
}
