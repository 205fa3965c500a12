package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// adder is a device of one kernel, add(ptr, u32 n, u32 v): the block with
// index i adds v to element i. It keeps memory in a map and reports the faults
// it is told to.
type adder struct {
	memory map[uint64][]byte
	faults []Fault
}

func (d *adder) Name() string                    { return "adder" }
func (d *adder) Provenance() Provenance          { return Counted }
func (d *adder) Unload(*Module) error            { return nil }
func (*adder) TensorMap(*TensorMap) (Arg, error) { return nil, errors.New("no tensor maps") }

func (d *adder) Close() error { return nil }

func (d *adder) Free(b Buffer) error { delete(d.memory, b.Address); return nil }

func (d *adder) Load(_ context.Context, _ string, text []byte) (*Module, error) {
	if string(text) == "garbage" {
		return nil, errors.New("k.ptx:1:1: garbage")
	}
	return &Module{Kernels: []Kernel{{Name: "add", Params: []Param{{"p", "u64", 0, 8, 8}, {"n", "u32", 8, 4, 4}, {"v", "u32", 12, 4, 4}}}}}, nil
}

func (d *adder) Alloc(size, align int64) (Buffer, error) {
	b := Buffer{uint64(len(d.memory)+1) << 32, size}
	d.memory[b.Address] = make([]byte, size)
	return b, nil
}

func (d *adder) Write(b Buffer, off int64, p []byte) error {
	copy(d.memory[b.Address][off:], p)
	return nil
}

func (d *adder) Read(b Buffer, off int64, p []byte) error {
	copy(p, d.memory[b.Address][off:])
	return nil
}

func (d *adder) Launch(_ context.Context, _ *Module, _ string, l Launch) (*Report, error) {
	addr := binary.LittleEndian.Uint64(l.Args[0])
	mem := d.memory[addr&^0xffffffff][uint32(addr):]
	v := binary.LittleEndian.Uint32(l.Args[2])
	run := func(i uint32) {
		binary.LittleEndian.PutUint32(mem[4*i:], binary.LittleEndian.Uint32(mem[4*i:])+v)
	}
	for _, b := range l.Blocks {
		run(b[0])
	}
	for i := range l.Grid[0] {
		if l.Blocks == nil {
			run(i)
		}
	}
	return &Report{Faults: d.faults, Counters: Counters{Blocks: int64(l.Grid[0])}, Printed: "x"}, nil
}

func u32s(all ...uint32) []byte {
	var b []byte
	for _, v := range all {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func addCase() *Case {
	return &Case{
		File: "c.json", PTXFile: "k.ptx",
		Buffers: []CaseBuffer{{Arg: 0, Type: numcheck.U32, Shape: []int64{4}, Data: u32s(1, 2, 3, 4), Want: u32s(11, 12, 13, 24)}},
		Launches: []CaseLaunch{
			{Kernel: "add", Grid: [3]uint32{4, 1, 1}, Args: []CaseArg{{}, {Buffer: -1, Bytes: u32s(4)}, {Buffer: -1, Bytes: u32s(10)}}},
			{Kernel: "add", Grid: [3]uint32{1, 1, 1}, Args: []CaseArg{{Offset: 12}, {Buffer: -1, Bytes: u32s(4)}, {Buffer: -1, Bytes: u32s(10)}}},
		},
	}
}

func newAdder(faults ...Fault) *adder { return &adder{memory: map[uint64][]byte{}, faults: faults} }

func TestRunCase(t *testing.T) {
	dev := newAdder()
	dir := t.TempDir()
	res, err := RunCase(context.Background(), dev, addCase(), RunOptions{Dump: filepath.Join(dir, "out")})
	require.NoError(t, err)
	require.True(t, res.OK)
	require.Equal(t, "add, add", res.Kernel)
	require.Equal(t, "xx", res.Printed)
	require.EqualValues(t, 5, res.Counters.Blocks)
	require.Empty(t, dev.memory, "buffers are freed")
	a, err := ReadNPYFile(filepath.Join(dir, "out", "arg0.npy"))
	require.NoError(t, err)
	require.Equal(t, &Array{"u4", []int64{4}, u32s(11, 12, 13, 24)}, a)

	text, err := json.Marshal(res)
	require.NoError(t, err)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(text, &keys))
	require.Equal(t, []any{map[string]any{"arg": 0.0, "mismatches": 0.0, "max_absolute_error": 0.0, "max_relative_error": 0.0, "first": nil}}, keys["buffers"])
	require.Equal(t, []any{}, keys["faults"])
	require.Equal(t, "counted", keys["provenance"])
	require.Equal(t, "adder", keys["device"])
	require.Equal(t, true, keys["ok"])
	require.Contains(t, keys, "counters")
}

func TestRunCaseWrongAnswer(t *testing.T) {
	c := addCase()
	c.Launches = c.Launches[:1]
	res, err := RunCase(context.Background(), newAdder(), c, RunOptions{})
	require.NoError(t, err)
	require.False(t, res.OK)
	b := res.Buffers[0]
	require.EqualValues(t, 1, b.Mismatches)
	require.EqualValues(t, 3, b.First.Index)
	require.Equal(t, "14", b.First.Got.String())
	require.Equal(t, "24", b.First.Want.String())
	require.Equal(t, 10.0, b.MaxAbs)
	require.Equal(t, 10.0/24, *b.MaxRel)
}

// What should be 0 and is not has no relative error.
func TestRunCaseWantsZero(t *testing.T) {
	c := addCase()
	c.Launches = c.Launches[:1]
	for i := range c.Buffers {
		if c.Buffers[i].Want != nil {
			clear(c.Buffers[i].Want)
		}
	}
	res, err := RunCase(context.Background(), newAdder(), c, RunOptions{})
	require.NoError(t, err)
	require.Positive(t, res.Buffers[0].MaxAbs)
	require.Nil(t, res.Buffers[0].MaxRel)
	text, err := json.Marshal(res.Buffers[0])
	require.NoError(t, err)
	require.Contains(t, string(text), `"max_relative_error":null`)
}

func TestRunCaseBlocks(t *testing.T) {
	c := addCase()
	c.Launches = c.Launches[:1]
	res, err := RunCase(context.Background(), newAdder(), c, RunOptions{Blocks: [][3]uint32{{1, 0, 0}, {2, 0, 0}}})
	require.NoError(t, err)
	require.True(t, res.OK, "elements 0 and 3 were not touched")
	res, err = RunCase(context.Background(), newAdder(), c, RunOptions{Blocks: [][3]uint32{{3, 0, 0}}})
	require.NoError(t, err)
	require.False(t, res.OK)
}

func TestRunCaseFaults(t *testing.T) {
	c := addCase()
	res, err := RunCase(context.Background(), newAdder(Fault{Class: SharedRace}), c, RunOptions{})
	require.NoError(t, err)
	require.False(t, res.OK)
	require.False(t, res.Faults[0].Expected)

	c.Fault = SharedRace
	res, err = RunCase(context.Background(), newAdder(Fault{Class: SharedRace}), c, RunOptions{})
	require.NoError(t, err)
	require.False(t, res.OK, "an expected fault is one too")
	require.True(t, res.Faults[0].Expected)
	require.Empty(t, res.MissingFault)

	res, err = RunCase(context.Background(), newAdder(), c, RunOptions{})
	require.NoError(t, err)
	require.False(t, res.OK)
	require.Equal(t, SharedRace, res.MissingFault)
}

func TestRunCaseThatDoesNotFit(t *testing.T) {
	for want, change := range map[string]func(*Case){
		"k.ptx:1:1: garbage":                                      func(c *Case) { c.PTX = []byte("garbage") },
		`k.ptx: kernel "sub": the module has add`:                 func(c *Case) { c.Launches[1].Kernel = "sub" },
		"c.json: kernel add: 2 arguments: want 3 (u64, u32, u32)": func(c *Case) { c.Launches[0].Args = c.Launches[0].Args[1:] },
		"c.json: kernel add: args[1] is i64 of 8 bytes: want 4 bytes for parameter n (.u32)": func(c *Case) {
			c.Launches[0].Args[1] = CaseArg{Buffer: -1, Bytes: make([]byte, 8), Kind: "i64"}
		},
	} {
		c := addCase()
		change(c)
		_, err := RunCase(context.Background(), newAdder(), c, RunOptions{})
		require.EqualError(t, err, want)
		var input *InputError
		require.ErrorAs(t, err, &input)
	}
}

// Adding to nothing gives the same, for every field there is.
func TestCountersAddTakesAll(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var c Counters
	fill(reflect.ValueOf(&c).Elem(), rng)
	c.Tensor = []TensorCount{{Kind: "mma", Shape: "m16n8k16", A: "f16", B: "f16", Accumulator: "f32", Count: 3, Operations: 9}, {Kind: "wgmma", Count: 1}}
	var sum Counters
	sum.Add(&c)
	require.Equal(t, c, sum)
	sum.Add(&c)
	require.EqualValues(t, 6, sum.Tensor[0].Count)
	require.Len(t, sum.Tensor, 2)
	require.Equal(t, 2*c.Shared.Operands.Ideal, sum.Shared.Operands.Ideal)

	text, err := json.Marshal(c)
	require.NoError(t, err)
	var back Counters
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, c, back)
	require.Equal(t, c.Instructions[ptx.PipeTensor], back.Instructions[ptx.PipeTensor])
	require.Error(t, json.Unmarshal([]byte(`{"instructions": {"gpu": {}}}`), &back))
}

func fill(v reflect.Value, rng *rand.Rand) {
	switch v.Kind() {
	case reflect.Int64:
		v.SetInt(rng.Int63n(1 << 40))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), rng)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), rng)
		}
	}
}
