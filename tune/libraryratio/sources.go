package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline/measured"
)

// dtypes are the families' words for the types of the tables.
var dtypes = map[string]string{"float16": "f16", "fp16": "f16", "fp8": "e4m3", "f32": "f32"}

// families are those of the tables' operations.
var families = map[measured.Op]string{measured.GEMM: "gemm", measured.Prefill: "flashattn", measured.Decode: "paged"}

// measuredGroups are the tables of times that NVIDIA measured: of each problem the fastest
// library's, unless the GPU can't have been so fast.
func measuredGroups() ([]*group, error) {
	var out []*group
	for _, op := range measured.Ops() {
		for _, id := range measured.GPUs() {
			for _, typ := range measured.Types() {
				g, err := measuredGroup(op, id, typ)
				if err != nil {
					return nil, err
				}
				if len(g.problems) > 0 {
					out = append(out, g)
				}
			}
		}
	}
	return out, nil
}

func measuredGroup(op measured.Op, id, typ string) (*group, error) {
	g := &group{family: families[op], gpu: id, typ: dtypes[typ], source: "NVIDIA, all shapes"}
	gpu, err := target.Lookup(id)
	if err != nil {
		return nil, err
	}
	place := map[string]int{}
	var ceilings *measured.Ceilings
	err = measured.Each(op, id, typ, func(s *measured.Sample) error {
		if ceilings == nil {
			if ceilings, err = measured.CeilingsOf(gpu, typ); err != nil {
				return err
			}
		}
		if ceilings.Doubt(s) == measured.Impossible {
			return nil
		}
		shape := s.Shape()
		if i, ok := place[shape]; ok {
			if i >= 0 {
				g.problems[i].us = min(g.problems[i].us, s.US)
			}
			return nil
		}
		place[shape] = -1
		flags, ok := flagsOf(s)
		if !ok {
			return nil
		}
		place[shape] = len(g.problems)
		g.problems = append(g.problems, problem{g.family, flags, s.US})
		return nil
	})
	return g, err
}

// flagsOf are the family's flags of a sample; false where the family lacks its kind: a
// window of prefill, a cache of another type.
func flagsOf(s *measured.Sample) (map[string]string, bool) {
	flags := map[string]string{"dtype": dtypes[s.Type]}
	set := func(name string, n int) { flags[name] = strconv.Itoa(n) }
	if s.Op == measured.GEMM {
		flags["layout"] = "nt" // as linear layers store their weights
		set("m", s.M)
		set("n", s.N)
		set("k", s.K)
		return flags, true
	}
	set("batch", s.Batch)
	set("heads", s.Heads)
	set("kv-heads", s.KVHeads)
	set("head-dim", s.HeadDim)
	switch {
	case s.KVType != s.Type:
		return nil, false
	case s.Op == measured.Prefill:
		set("seq", s.NewTokens)
		set("seq-kv", s.NewTokens+s.PastTokens)
		return flags, s.Window == 0
	default:
		set("context", s.PastTokens+1)
		set("window", s.Window)
		return flags, true
	}
}

// source is a published table of times or rates.
type source struct {
	file, name, family string
	gpus               []string
	problem            func(r map[string]string) (typ string, flags map[string]string, us float64)
}

// published are what the tables above lack: other GPUs, other libraries.
var published = []source{
	{"nvidia-gemm.csv", "NVIDIA, 13 shapes", "gemm", []string{"l40s", "h200", "b200"}, func(r map[string]string) (string, map[string]string, float64) {
		return r["type"], pick(r, "m", "n", "k", "layout:nt"), number(r["time_us"])
	}},
	{"nvidia-prefill.csv", "NVIDIA, 5 shapes", "flashattn", []string{"h200", "b200"}, func(r map[string]string) (string, map[string]string, float64) {
		return r["type"], pick(r, "batch", "heads", "kv_heads", "head_dim", "seq"), number(r["time_us"])
	}},
	{"nvidia-decode.csv", "NVIDIA, 10 shapes", "paged", []string{"h200", "b200"}, func(r map[string]string) (string, map[string]string, float64) {
		f := pick(r, "batch", "heads", "kv_heads", "head_dim")
		f["context"] = r["past"]
		return r["type"], f, number(r["time_us"])
	}},
	{"flashattention3.csv", "FlashAttention-3's paper", "flashattn", []string{"h100"}, func(r map[string]string) (string, map[string]string, float64) {
		if r["method"] != "FA3" && r["method"] != "cuDNN" {
			return "", nil, 0
		}
		flops := 4 * number(r["batch"]) * number(r["heads"]) * number(r["head_dim"]) * number(r["seq"]) * number(r["seq"])
		if r["causal"] == "true" {
			flops /= 2
		}
		f := pick(r, "causal", "batch", "heads", "head_dim", "seq")
		f["kv-heads"] = r["heads"]
		return "fp16", f, flops / number(r["tflops"]) / 1e6
	}},
	{"ort-paged.csv", "ONNX Runtime", "paged", []string{"h100"}, func(r map[string]string) (string, map[string]string, float64) {
		f := pick(r, "batch", "heads", "kv_heads", "head_dim", "page")
		f["context"] = r["past"]
		return "fp16", f, number(r["time_us"])
	}},
	{"sgemm-ladder.csv", "cuBLAS, by S. Boehm", "gemm", []string{"rtx-a6000"}, func(r map[string]string) (string, map[string]string, float64) {
		if r["kernel"] != "cuBLAS" {
			return "", nil, 0
		}
		const n = 4092
		return "f32", map[string]string{"m": "4092", "n": "4092", "k": "4092"}, 2 * n * n * n / number(r["gflops"]) / 1e3
	}},
}

// pick is a row's columns as flags, with `name:value` for those that it lacks.
func pick(r map[string]string, columns ...string) map[string]string {
	out := map[string]string{}
	for _, c := range columns {
		switch c {
		case "layout:nt":
			out["layout"] = "nt"
		case "kv_heads":
			out["kv-heads"] = r[c]
		case "head_dim":
			out["head-dim"] = r[c]
		default:
			out[c] = r[c]
		}
	}
	return out
}

func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64) // what is no number is refused where it is used
	return v
}

func publishedGroups(folder string) ([]*group, error) {
	var out []*group
	for _, s := range published {
		rows, err := read(filepath.Join(folder, s.file))
		if err != nil {
			return nil, err
		}
		for _, name := range s.gpus {
			groups, err := s.groups(rows, name)
			if err != nil {
				return nil, err
			}
			out = append(out, groups...)
		}
	}
	return out, nil
}

// groups are a source's problems on a GPU, by type; of each the fastest time.
func (s *source) groups(rows []map[string]string, name string) ([]*group, error) {
	gpu, err := target.Lookup(name)
	if err != nil {
		return nil, err
	}
	var out []*group
	for i, r := range rows {
		if of, ok := r["gpu"]; ok && of != name {
			continue
		}
		word, flags, us := s.problem(r)
		if word == "" {
			continue
		}
		typ := dtypes[word]
		if typ == "" || !(us > 0) {
			return nil, fmt.Errorf("%s, row %d: type %q, %g us: want a known type and a time above 0", s.file, i+1, word, us)
		}
		flags["dtype"] = typ
		at := slices.IndexFunc(out, func(g *group) bool { return g.typ == typ })
		if at < 0 {
			at = len(out)
			out = append(out, &group{family: s.family, gpu: gpu.ID, typ: typ, source: s.name})
		}
		out[at].add(problem{s.family, flags, us})
	}
	return out, nil
}

// add keeps a problem, or the shorter time of one that is there.
func (g *group) add(p problem) {
	for i, known := range g.problems {
		if fmt.Sprint(known.flags) == fmt.Sprint(p.flags) {
			g.problems[i].us = min(known.us, p.us)
			return
		}
	}
	g.problems = append(g.problems, p)
}

// read reads a table as its rows by column.
func read(file string) ([]map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var out []map[string]string
	for _, line := range lines[1:] {
		r := map[string]string{}
		for i, name := range lines[0] {
			r[name] = line[i]
		}
		out = append(out, r)
	}
	return out, nil
}
