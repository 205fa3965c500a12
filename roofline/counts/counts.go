// Package counts makes kernels to judge from what the virtual machine counted, or a
// device timed, as `kgen run --json` writes it.
package counts

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/roofline"
)

// mostCounted bounds a counter, so that sums of them are exact.
const mostCounted = 1 << 53

// Parse reads what `kgen run --json` writes. The error begins with the line and names
// what the text lacks or a counter that none can be.
func Parse(data []byte) (*roofline.Kernel, error) {
	var r bench.Result
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, jsontext.Locate(data, err)
	}
	if err := jsontext.Numbers(data, func(path string, n json.Number) error {
		v, err := n.Float64()
		if path == "time_us" && (err != nil || !(v > 0)) {
			return fmt.Errorf("time_us %s: want microseconds above 0", n)
		}
		counter := strings.HasPrefix(path, "counters.") || strings.HasPrefix(path, "lines.") || path == "launches"
		if counter && (err != nil || v < 0 || v > mostCounted) {
			return fmt.Errorf("%s %s: want a count from 0 to 2^53", path, n)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	k, err := Kernel(&r)
	if err != nil {
		return nil, &jsontext.Error{Line: 1, Err: err}
	}
	return k, nil
}

// Kernel is a run's launches together. A run on a device has a time and no counters:
// its work is for the caller to add.
func Kernel(r *bench.Result) (*roofline.Kernel, error) {
	k := &roofline.Kernel{Name: r.Kernel, Launches: 1, TimeUS: r.TimeUS}
	if k.TimeUS > 0 {
		k.From = bench.Measured
	}
	c := r.Counters
	if c == nil {
		if k.TimeUS == 0 {
			return nil, errors.New("neither counters nor a time")
		}
		return k, nil
	}
	shared, pipes := c.Shared.Total(), &c.Instructions
	if pipes.Total().Warp == 0 {
		return nil, errors.New("counters.instructions: no instruction was counted: want what kgen run --json prints of a kernel that ran")
	}
	count := func(n int64) roofline.Count {
		if n == 0 {
			return roofline.Count{}
		}
		return roofline.Counted(float64(n))
	}
	k.Work = roofline.Work{
		HBMBytes: count(c.L2.MemoryBytes()), L2Bytes: count(c.L2.Bytes()), SharedBytes: count(roofline.WavefrontBytes * shared.Wavefronts),
		MUFU: count(pipes[ptx.PipeMUFU].Thread), FMA: count(pipes[ptx.PipeFMA].Thread), ALU: count(pipes[ptx.PipeALU].Thread), Issue: count(pipes.Total().Warp),
		Launches: roofline.Formula(float64(max(1, r.Launches))), // a case says how many
	}
	k.Least = count(c.Global.UniqueRead + c.Global.UniqueWritten)
	k.Seen = roofline.Seen{
		Loads: access(&c.Global.Loads), Stores: access(&c.Global.Stores), Wavefronts: float64(shared.Wavefronts), IdealWavefronts: float64(shared.Ideal),
		HitRate: c.L2.HitRate(), Spilled: float64(c.Local.Bytes), Worst: worst(r.Lines),
	}
	return k, operations(k, c.Tensor)
}

func access(a *bench.AccessCount) roofline.Access {
	return roofline.Access{Requests: float64(a.Requests), Sectors: float64(a.Sectors), Bytes: float64(a.Bytes)}
}

// operations adds up the tensor instructions by the arithmetic they do.
func operations(k *roofline.Kernel, tensor []bench.TensorCount) error {
	for _, t := range tensor {
		m, ok := arithmetic(&t)
		if !ok {
			return fmt.Errorf("tensor instructions %s of %s into %s: no rate is known for them", t.Shape, t.A, t.Accumulator)
		}
		i := slices.IndexFunc(k.Work.Operations, func(o roofline.Operations) bool { return o.Math == m })
		if i < 0 {
			i = len(k.Work.Operations)
			k.Work.Operations = append(k.Work.Operations, roofline.Operations{Math: m, Count: roofline.Counted(0)})
		}
		k.Work.Operations[i].Count.Value += float64(t.Operations)
	}
	return nil
}

// arithmetic is the kind that a tensor instruction's types run at.
func arithmetic(t *bench.TensorCount) (target.Math, bool) {
	narrow := t.Accumulator == "f16"
	switch t.A {
	case "f16":
		if narrow {
			return target.F16Acc16, true
		}
		return target.F16Acc32, true
	case "bf16":
		return target.BF16, true
	case "tf32":
		return target.TF32, true
	case "f64":
		return target.F64Tensor, true
	case "s8", "u8":
		return target.I8, true
	case "e4m3", "e5m2", "e3m2", "e2m3":
		if narrow {
			return target.F8Acc16, true
		}
		return target.F8Acc32, true
	case "e2m1":
		return target.F4, true
	}
	return "", false
}

// worst names the line that loses most to bank conflicts, or else to sectors that its
// threads did not ask for.
func worst(lines []bench.LineCount) string {
	var most *bench.LineCount
	var lost int64
	for i := range lines {
		l := &lines[i]
		// A wavefront moves four sectors.
		if n := l.Shared.Conflicts() + max(0, l.Global.Sectors-l.Global.Bytes/bench.SectorBytes)/4; n > lost {
			most, lost = l, n
		}
	}
	switch {
	case most == nil:
		return ""
	case most.Source != "":
		return filepath.Base(most.Source)
	}
	return fmt.Sprintf("PTX line %d", most.Line)
}
