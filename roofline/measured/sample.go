package measured

import (
	"bytes"
	"fmt"
	"strconv"
)

// Sample is one row of the tables.
type Sample struct {
	Op                 Op
	Framework, Version string
	Type, KVType       string // "float16" or "fp8"; no KVType for a GEMM
	M, N, K            int    // of a GEMM
	Attention                 // of the others
	US                 float64
}

// Ops returns the operations of the tables, in a fixed order.
func Ops() []Op { return []Op{GEMM, Prefill, Decode} }

// GPUs returns the ids of the GPUs that the tables have.
func GPUs() []string { return []string{a100, h100} }

// typeBytes are the sizes of the types that the tables name.
var typeBytes = map[string]float64{"float16": 2, "fp8": 1}

// Each calls f with every row of an operation, a GPU and a type of operands
// ("float16", "fp8"; "" is all), but for those that name no problem: the tables
// have sizes of 0. The sample is valid until f returns.
func Each(op Op, gpu, typ string, f func(*Sample) error) error {
	for _, t := range tables {
		if t.op != op || t.gpu != gpu {
			continue
		}
		s := Sample{Op: op, Framework: t.framework, Version: t.version}
		err := t.lines(func(line []byte) error {
			if err := s.parse(line); err != nil {
				return err
			}
			if typ != "" && s.Type != typ || !s.sensible() {
				return nil
			}
			return f(&s)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sensible says whether the row names a problem at all.
func (s *Sample) sensible() bool {
	if typeBytes[s.Type] == 0 {
		return false
	}
	if s.Op == GEMM {
		return min(s.M, s.N, s.K) > 0
	}
	return typeBytes[s.KVType] > 0 && min(s.Batch, s.NewTokens, s.Heads, s.KVHeads, s.HeadDim) > 0
}

// parse reads a line of the sample's operation.
func (s *Sample) parse(line []byte) error {
	sizes := []*int{&s.Batch, &s.NewTokens, &s.PastTokens, &s.Heads, &s.KVHeads, &s.HeadDim, &s.Window}
	texts := []*string{&s.Type, &s.KVType}
	if s.Op == GEMM {
		sizes, texts = []*int{&s.M, &s.N, &s.K}, texts[:1]
	}
	for _, t := range texts {
		var field []byte
		field, line, _ = bytes.Cut(line, []byte(","))
		if *t != string(field) {
			*t = string(field)
		}
	}
	for _, n := range sizes {
		var field []byte
		field, line, _ = bytes.Cut(line, []byte(","))
		v, err := strconv.Atoi(string(field))
		if err != nil || v < 0 {
			return fmt.Errorf("size %q: want a whole number from 0", field)
		}
		*n = v
	}
	ms, err := strconv.ParseFloat(string(line), 64)
	if err != nil || !(ms > 0) {
		return fmt.Errorf("latency %q: want milliseconds above 0", line)
	}
	s.US = ms * 1e3
	return nil
}

// FLOPs returns the useful operations: 2*M*N*K of a GEMM, 4*batch*heads*
// head_dim for each visible pair of query and key of attention, of which a
// causal square has half.
func (s *Sample) FLOPs() float64 {
	if s.Op == GEMM {
		return 2 * float64(s.M) * float64(s.N) * float64(s.K)
	}
	return 4 * float64(s.Batch) * float64(s.Heads) * float64(s.HeadDim) * s.pairs()
}

// pairs counts the keys that the queries of one head see. Queries before the
// window is full see all before them.
func (s *Sample) pairs() float64 {
	past, queries := float64(s.PastTokens), float64(s.NewTokens)
	if s.Op == Decode {
		if s.Window > 0 {
			return min(past+1, float64(s.Window))
		}
		return past + 1
	}
	full := queries
	if s.Window > 0 {
		full = min(max(float64(s.Window)-past, 0), queries)
	}
	return full*past + full*full/2 + (queries-full)*float64(s.Window)
}

// Bytes returns the least traffic with memory: every operand once. Results of
// an fp8 GEMM have 2 bytes.
func (s *Sample) Bytes() float64 {
	w := typeBytes[s.Type]
	if s.Op == GEMM {
		m, n, k := float64(s.M), float64(s.N), float64(s.K)
		return w*(m*k+k*n) + 2*m*n
	}
	keys := float64(s.PastTokens + s.NewTokens)
	if s.Op == Decode && s.Window > 0 {
		keys = min(keys, float64(s.Window))
	}
	row := float64(s.Batch) * float64(s.HeadDim)
	return row * (2*w*float64(s.NewTokens)*float64(s.Heads) + 2*typeBytes[s.KVType]*keys*float64(s.KVHeads))
}

// Shape returns the problem's sizes in a few words.
func (s *Sample) Shape() string {
	if s.Op == GEMM {
		return fmt.Sprintf("m=%d n=%d k=%d", s.M, s.N, s.K)
	}
	t := fmt.Sprintf("batch=%d new=%d past=%d heads=%d/%d dim=%d", s.Batch, s.NewTokens, s.PastTokens, s.Heads, s.KVHeads, s.HeadDim)
	if s.KVType != s.Type {
		t += " cache=" + s.KVType
	}
	if s.Window > 0 {
		t += fmt.Sprintf(" window=%d", s.Window)
	}
	return t
}

// Library names what was measured.
func (s *Sample) Library() string { return s.Framework + " " + s.Version }
