// Package measured answers what a library reached on a GPU for exactly a given
// problem, from kernel times that NVIDIA measured and published (data/ORIGIN.md).
package measured

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed data/*.csv.gz data/ORIGIN.md
var data embed.FS

// Op is a table of the data.
type Op string

// The operations the tables hold.
const (
	GEMM    Op = "gemm"
	Prefill Op = "prefill" // causal attention of new tokens after past ones
	Decode  Op = "decode"  // one new token against a paged cache
)

// table is one embedded file.
type table struct {
	op                 Op
	gpu                string // id in codegen/target
	file               string
	framework, version string
}

// tables lists the embedded files; the best library comes out of the times,
// not of this order.
var tables = []table{
	{GEMM, a100, "gemm_a100_trtllm_1.0.0", "TensorRT-LLM", "1.0.0"},
	{GEMM, a100, "gemm_a100_vllm_0.14.0", "vLLM", "0.14.0"},
	{GEMM, h100, "gemm_h100_trtllm_1.2.0rc5", "TensorRT-LLM", "1.2.0rc5"},
	{GEMM, h100, "gemm_h100_vllm_0.14.0", "vLLM", "0.14.0"},
	{Prefill, a100, "prefill_a100_trtllm_1.0.0", "TensorRT-LLM", "1.0.0"},
	{Prefill, a100, "prefill_a100_vllm_0.14.0", "vLLM", "0.14.0"},
	{Prefill, h100, "prefill_h100_trtllm_1.2.0rc5", "TensorRT-LLM", "1.2.0rc5"},
	{Prefill, h100, "prefill_h100_vllm_0.14.0", "vLLM", "0.14.0"},
	{Decode, a100, "decode_a100_trtllm_1.0.0", "TensorRT-LLM", "1.0.0"},
	{Decode, a100, "decode_a100_vllm_0.14.0", "vLLM", "0.14.0"},
	{Decode, h100, "decode_h100_trtllm_1.2.0rc5", "TensorRT-LLM", "1.2.0rc5"},
	{Decode, h100, "decode_h100_vllm_0.14.0", "vLLM", "0.14.0"},
}

const (
	a100 = "a100-sxm4-80"
	h100 = "h100-sxm5-80"
)

// Time is what one library reached for a problem.
type Time struct {
	US        float64 `json:"us"` // microseconds
	Framework string  `json:"framework"`
	Version   string  `json:"version"`
	Type      string  `json:"type"`              // the row's: "float16" or "fp8"
	Note      string  `json:"note,omitempty"`    // where the row's type is not the one asked for
	Match     Match   `json:"match"`             // whether the tables have the problem itself
	Between   string  `json:"between,omitempty"` // the sizes that an interpolated time lies between
	Doubt     Doubt   `json:"doubt,omitempty"`   // where the GPU can't have been as fast
}

// Match says how a time was found in the tables.
type Match string

// A time is that of the problem itself, or between those of its neighbours.
const (
	Exact        Match = "exact"
	Interpolated Match = "interpolated"
)

func (t Time) String() string {
	s := fmt.Sprintf("%.0f us", t.US)
	if t.US >= 1000 {
		s = fmt.Sprintf("%.2f ms", t.US/1e3)
	}
	s += fmt.Sprintf(" (%s %s, %s, %s", t.Framework, t.Version, t.Type, t.Match)
	if t.Between != "" {
		s += " between " + t.Between
	}
	if t.Note != "" {
		s += "; " + t.Note
	}
	if t.Doubt != "" {
		s += "; " + string(t.Doubt)
	}
	return s + ")"
}

// Attention is an attention problem of the tables. Decode leaves NewTokens 1.
type Attention struct {
	Batch, NewTokens, PastTokens, Heads, KVHeads, HeadDim, Window int
}

// rowType maps an element type to that of the tables: bf16 is compared with
// float16, which runs at the same rate.
func rowType(typ string) (row, note string, ok bool) {
	switch typ {
	case "f16":
		return "float16", "", true
	case "bf16":
		return "float16", "a bf16 problem compared with the float16 row", true
	case "e4m3":
		return "fp8", "", true
	}
	return "", "", false
}

// RowType returns the tables' word for an element type; false where they have none.
func RowType(typ string) (string, bool) {
	row, _, ok := rowType(typ)
	return row, ok
}

// LookupGEMM returns the times for C = A * B with M x K and K x N operands of a
// type ("f16", "bf16", "e4m3"), one of each library, the fastest possible first and
// impossible ones last: that of the shape itself, else between its neighbours in the
// tables; none if the tables lack the GPU (its id in codegen/target), the type or
// neighbours.
func LookupGEMM(gpu, typ string, m, n, k int) ([]Time, error) {
	row, note, ok := rowType(typ)
	if !ok || min(m, n, k) < 1 { // the tables hold rows of size 0, which say nothing
		return nil, nil
	}
	return find(&Sample{Op: GEMM, Type: row, M: m, N: n, K: k}, gpu, note)
}

// LookupAttention returns the times for a Prefill or Decode problem whose
// queries and cache have these types, as LookupGEMM does; the batch and the
// numbers of tokens may lie between those of the tables.
func LookupAttention(op Op, gpu, typ, kvType string, p Attention) ([]Time, error) {
	if op != Prefill && op != Decode {
		return nil, fmt.Errorf("operation %q: want prefill or decode", op)
	}
	row, note, ok := rowType(typ)
	kv, _, okKV := rowType(kvType)
	if !ok || !okKV || min(p.Batch, p.NewTokens, p.Heads, p.KVHeads, p.HeadDim) < 1 {
		return nil, nil
	}
	return find(&Sample{Op: op, Type: row, KVType: kv, Attention: p}, gpu, note)
}

// find looks a problem up in the table of each library.
func find(want *Sample, gpu, note string) ([]Time, error) {
	prefix := want.key()
	var out []Time
	for _, t := range tables {
		if t.op != want.Op || t.gpu != gpu {
			continue
		}
		found := Time{Framework: t.framework, Version: t.version, Type: want.Type, Note: note, Match: Exact}
		err := t.lines(func(line []byte) error {
			if !bytes.HasPrefix(line, prefix) {
				return nil
			}
			ms, err := strconv.ParseFloat(string(line[len(prefix):]), 64)
			if err != nil || !(ms > 0) {
				return fmt.Errorf("latency %q: want milliseconds above 0", line[len(prefix):])
			}
			found.US = ms * 1e3
			return nil
		})
		if err == nil && found.US == 0 {
			found.Match = Interpolated
			found.US, found.Between, err = t.between(want)
		}
		if err != nil {
			return nil, err
		}
		if found.US > 0 {
			if found.Doubt, err = want.impossible(gpu, found.US); err != nil {
				return nil, err
			}
			out = append(out, found)
		}
	}
	slices.SortStableFunc(out, func(x, y Time) int {
		return cmp.Or(cmp.Compare(x.Doubt, y.Doubt), cmp.Compare(x.US, y.US))
	})
	return out, nil
}

// key is how the problem's line begins.
func (s *Sample) key() []byte {
	fields := []string{s.Type}
	sizes := []int{s.M, s.N, s.K}
	if s.Op != GEMM {
		fields = append(fields, s.KVType)
		sizes = []int{s.Batch, s.NewTokens, s.PastTokens, s.Heads, s.KVHeads, s.HeadDim, s.Window}
	}
	for _, n := range sizes {
		fields = append(fields, strconv.Itoa(n))
	}
	return []byte(strings.Join(fields, ",") + ",")
}

// lines calls f for every row below the heading.
func (t table) lines(f func([]byte) error) error {
	name := "data/" + t.file + ".csv.gz"
	packed, err := data.Open(name)
	if err != nil {
		return err
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s := bufio.NewScanner(r)
	for n := 0; s.Scan(); n++ {
		if n == 0 {
			continue
		}
		if err := f(s.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n+1, err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
