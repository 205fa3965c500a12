// Package reproduce computes published roofline results again: from the
// figures that a publication prints (data, with their origins in
// data/ORIGIN.md), from formulas and from the GPU table.
package reproduce

import (
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// Row is one published number beside the computed one. It is OK if both can be
// the same number, each rounded where it was printed.
type Row struct {
	Label     string  `json:"label"`
	Published float64 `json:"published"`
	Computed  float64 `json:"computed"`
	OK        bool    `json:"ok"`
}

// Result is one publication's numbers.
type Result struct {
	Name string `json:"name"`
	Rows []Row  `json:"rows"`

	Title  string       `json:"-"`
	Figure *plot.Figure `json:"-"` // the publication's points on a roofline
}

// Failed returns the rows that are off by more than rounding.
func (r *Result) Failed() []Row {
	var out []Row
	for _, row := range r.Rows {
		if !row.OK {
			out = append(out, row)
		}
	}
	return out
}

// add appends a row.
func (r *Result) add(label string, published, computed quantity) {
	r.Rows = append(r.Rows, Row{label, published.value, computed.value, published.agrees(computed)})
}

// publication is a named set of results and how to compute them.
type publication struct {
	name, title string
	compute     func(r *Result, t *table) error
}

// publications lists all, in the order in which they are printed.
var publications = []publication{
	{"gpp", "GPP self-energy on V100, six versions (NERSC)", gpp},
	{"gene", "GENE kernels on V100 (Physics of Plasmas 2020)", gene},
	{"deepgemm", "DeepGEMM fp8 GEMMs on H800", deepGEMM},
	{"flashattention2", "FlashAttention-2, forward and backward", flashAttention2},
	{"flashattention3", "FlashAttention-3, forward, on H100", flashAttention3},
	{"ort-paged", "ONNX Runtime paged decode on H100", pagedDecode},
	{"sgemm-ladder", "SGEMM step by step on RTX A6000", sgemmLadder},
	{"layernorm-v100", "Fused dropout, residual and LayerNorm on V100", layerNorm},
	{"quack", "QuACK memory-bound kernels on H100", quack},
	{"nvidia-gemm", "GEMMs measured by NVIDIA", nvidiaGEMM},
	{"nvidia-prefill", "Prefill attention measured by NVIDIA", nvidiaPrefill},
	{"nvidia-decode", "Decode attention measured by NVIDIA", nvidiaDecode},
}

// Names returns the names that Compute takes.
func Names() []string {
	var names []string
	for _, p := range publications {
		names = append(names, p.name)
	}
	return names
}

// UnknownError is the error of Compute for a name that it does not have.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("publication %q: want one of %s", e.Name, strings.Join(Names(), ", "))
}

// Compute computes one publication's results. Rows that disagree are no error.
func Compute(name string) (*Result, error) {
	for _, p := range publications {
		if p.name != name {
			continue
		}
		t, err := open(name)
		if err != nil {
			return nil, err
		}
		r := &Result{Name: p.name, Title: p.title}
		if err := p.compute(r, t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return r, t.err
	}
	return nil, &UnknownError{name}
}

// gpu finds a GPU of the table.
func gpu(name string) (*target.GPU, roofline.Roofs, error) {
	g, err := target.Lookup(name)
	if err != nil {
		return nil, roofline.Roofs{}, err
	}
	return g, roofline.DeviceRoofs(g), nil
}

// deviceFigure is an empty figure with a GPU's memory and peaks.
func (r *Result) deviceFigure(name string, kinds ...target.Math) (*target.GPU, error) {
	g, roofs, err := gpu(name)
	if err != nil {
		return nil, err
	}
	r.Figure = &plot.Figure{
		Title: r.Title, Subtitle: g.Name,
		Slopes: []plot.Slope{plot.MemorySlope(roofs.Name(roofline.HBM), roofs.HBM)},
	}
	for _, m := range kinds {
		p, ok := g.Peak(m)
		if !ok {
			return nil, fmt.Errorf("%s: no %s peak", g.ID, m)
		}
		r.Figure.Roofs = append(r.Figure.Roofs, plot.PeakRoof(p))
	}
	return g, nil
}

// hbm is a point at the memory's level alone.
func hbm(intensity float64) []roofline.Intensity {
	return []roofline.Intensity{{Level: roofline.HBM, Value: intensity}}
}
