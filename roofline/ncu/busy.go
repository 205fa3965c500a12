package ncu

import "github.com/kgen-dev/kgen/roofline"

// memoryLabel stands in the details page for two metrics; the one in percent is kept by a
// name of its own.
const (
	memoryLabel = "Memory Throughput"
	memoryShare = memoryLabel + " %"
)

// busyParts are the metrics that say how much of its peak a part of the GPU works at. A
// tensor pipe's are of its kinds, of which a kernel uses one.
var busyParts = func() map[string]roofline.Part {
	m := map[string]roofline.Part{
		"Compute (SM) Throughput": roofline.PartSM, memoryShare: roofline.PartMemory, "DRAM Throughput": roofline.PartDRAM,
		"L1/TEX Cache Throughput": roofline.PartL1, "L2 Cache Throughput": roofline.PartL2,
	}
	for prefix, part := range map[string]roofline.Part{
		"sm__throughput": roofline.PartSM, "gpu__compute_memory_throughput": roofline.PartMemory, "dram__throughput": roofline.PartDRAM, "gpu__dram_throughput": roofline.PartDRAM,
		"l1tex__throughput": roofline.PartL1, "lts__throughput": roofline.PartL2,
		"sm__pipe_tensor_cycles_active": roofline.PartTensor, "sm__pipe_tensor_op_hmma_cycles_active": roofline.PartTensor, "sm__pipe_tensor_op_imma_cycles_active": roofline.PartTensor,
		"sm__pipe_tensor_op_dmma_cycles_active": roofline.PartTensor, "sm__pipe_tensor_op_gmma_cycles_active": roofline.PartTensor,
		"sm__inst_executed_pipe_tensor": roofline.PartTensor,
	} {
		for _, of := range []string{"elapsed", "active"} {
			m[prefix+".avg.pct_of_peak_sustained_"+of] = part
		}
	}
	return m
}()

// busy is the launches' mean of what each part's busiest metric says; parts that only
// some launches have are left out.
func busy(group []*launch) ([]roofline.Busy, error) {
	sum, times := map[roofline.Part]float64{}, map[roofline.Part]int{}
	for _, l := range group {
		most := map[roofline.Part]float64{}
		for i := range l.metrics {
			name := l.metrics[i].name
			part, ok := busyParts[name]
			if !ok {
				continue
			}
			v, ok, err := l.number(name, percent)
			if err != nil {
				return nil, err
			}
			if ok {
				most[part] = max(most[part], v/100)
			}
		}
		for part, v := range most {
			sum[part] += v
			times[part]++
		}
	}
	var out []roofline.Busy
	for _, part := range roofline.Parts() {
		if times[part] == len(group) {
			out = append(out, roofline.Busy{Part: part, Share: sum[part] / float64(len(group))})
		}
	}
	return out, nil
}
