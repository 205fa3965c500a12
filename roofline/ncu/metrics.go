package ncu

import (
	"regexp"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
)

// source is one way to a quantity: metrics that are summed, each times a
// factor. Names differ from chip to chip and from page to page.
type source struct {
	dim   dimension
	terms []term
}

type term struct {
	metric string
	factor float64
}

func one(dim dimension, metric string) source { return source{dim, []term{{metric, 1}}} }

func sum(dim dimension, factor float64, metrics ...string) source {
	s := source{dim: dim}
	for _, m := range metrics {
		s.terms = append(s.terms, term{m, factor})
	}
	return s
}

// quantity is what the reader is after; the first source whose metrics are all
// there gives it.
type quantity uint8

const (
	timeUS quantity = iota
	cycles
	clockHz
	dramBytes
	dramRate
	l2Bytes
	wavefronts
	conflicts
	warpInstructions
	mufu
	fma
	alu
	occupancy
	waves
	hitRate
	spilled
	loadRequests
	loadSectors
	storeRequests
	storeSectors
	quantities // how many
)

const (
	wavefrontBytes = 128
	warpThreads    = 32
)

// sources lists every quantity's ways, the exactest first.
var sources = [quantities][]source{
	timeUS:  {one(duration, "gpu__time_duration.sum"), one(duration, "gpu__time_duration.avg"), one(duration, "gpu__time_duration_measured_wallclock.sum"), one(duration, "Duration")},
	cycles:  {one(plain, "sm__cycles_elapsed.avg"), one(plain, "sm__cycles_elapsed.max"), one(plain, "smsp__cycles_elapsed.avg"), one(plain, "gpc__cycles_elapsed.max"), one(plain, "Elapsed Cycles")},
	clockHz: {one(frequency, "sm__cycles_elapsed.avg.per_second"), one(frequency, "smsp__cycles_elapsed.avg.per_second"), one(frequency, "gpc__cycles_elapsed.avg.per_second"), one(frequency, "SM Frequency")},
	dramBytes: {
		one(data, "dram__bytes.sum"),
		sum(data, 1, "dram__bytes_read.sum", "dram__bytes_write.sum"),
		sum(data, 1, "dram__bytes_op_read.sum", "dram__bytes_op_write.sum"),
		sum(plain, bench.SectorBytes, "dram__sectors_read.sum", "dram__sectors_write.sum"),
		sum(plain, bench.SectorBytes, "dram__sectors_op_read.sum", "dram__sectors_op_write.sum"),
		sum(plain, bench.SectorBytes, "dram__sectors.sum"),
	},
	dramRate: {one(rate, "dram__bytes.sum.per_second"), sum(rate, 1, "dram__bytes_read.sum.per_second", "dram__bytes_write.sum.per_second"),
		sum(rate, 1, "dram__bytes_op_read.sum.per_second", "dram__bytes_op_write.sum.per_second"), one(rate, "Memory Throughput")},
	l2Bytes: {one(data, "lts__t_bytes.sum"), sum(plain, bench.SectorBytes, "lts__t_sectors.sum"),
		sum(plain, bench.SectorBytes, "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", "lts__t_sectors_op_atom.sum", "lts__t_sectors_op_red.sum"),
		sum(plain, bench.SectorBytes, "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum")},
	wavefronts: {sum(plain, 1, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
		sum(plain, 1, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum")},
	conflicts: {sum(plain, 1, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
		sum(plain, 1, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum")},
	warpInstructions: {one(plain, "smsp__inst_executed.sum"), one(plain, "sm__inst_executed.sum"), one(plain, "Executed Instructions")},
	mufu:             {sum(plain, warpThreads, "sm__inst_executed_pipe_xu.sum"), sum(plain, warpThreads, "smsp__inst_executed_pipe_xu.sum")},
	fma:              {sum(plain, warpThreads, "sm__inst_executed_pipe_fma.sum"), sum(plain, warpThreads, "smsp__inst_executed_pipe_fma.sum")},
	alu:              {sum(plain, warpThreads, "sm__inst_executed_pipe_alu.sum"), sum(plain, warpThreads, "smsp__inst_executed_pipe_alu.sum")},
	occupancy:        {sum(percent, 0.01, "sm__warps_active.avg.pct_of_peak_sustained_active"), sum(percent, 0.01, "Achieved Occupancy")},
	waves:            {one(plain, "launch__waves_per_multiprocessor"), one(plain, "Waves Per SM")},
	hitRate:          {sum(percent, 0.01, "lts__t_sector_hit_rate.pct"), sum(percent, 0.01, "L2 Hit Rate")},
	spilled: {sum(plain, bench.SectorBytes, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"),
		sum(data, 1, "l1tex__t_bytes_pipe_lsu_mem_local.sum")},
	loadRequests:  {one(plain, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")},
	loadSectors:   {one(plain, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")},
	storeRequests: {one(plain, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")},
	storeSectors:  {one(plain, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum")},
}

// flops are operations of one kind of arithmetic.
type flops struct {
	math   target.Math
	source source
}

// vectorFLOPs are the counters of instructions that are no tensor ones: an FMA
// is two operations. A half-precision counter counts the instruction once, though
// it works on a pair: Nsight Compute's own half-precision roofline takes an addition
// and a multiplication twice and an FMA four times (its derived metrics
// ..._op_hadd_pred_on_x2, ..._op_hmul_pred_on_x2 and ..._op_hfma_pred_on_x4).
var vectorFLOPs = func() []flops {
	var out []flops
	for _, prefix := range []string{"smsp__sass_thread_inst_executed_op_", "sm__sass_thread_inst_executed_op_"} {
		for _, k := range []struct {
			letter string
			math   target.Math
			each   float64
		}{{"d", target.F64, 1}, {"f", target.F32, 1}, {"h", target.F16Vector, 2}} {
			out = append(out, flops{k.math, source{plain, []term{
				{prefix + k.letter + "add_pred_on.sum", k.each}, {prefix + k.letter + "mul_pred_on.sum", k.each}, {prefix + k.letter + "fma_pred_on.sum", 2 * k.each},
			}}})
		}
	}
	return out
}()

// tensorPrefix begins the names of the counters of tensor operations of newer chips.
const tensorPrefix = "sm__ops_path_tensor_src_"

// tensorPath matches the counters of tensor operations of newer chips, with the
// operands' and, where the name tells, the accumulator's type.
var tensorPath = regexp.MustCompile(`^` + tensorPrefix + `(.+?)(?:_dst_(fp16|fp32))?(?:_sparsity_(?:off|on))?\.sum$`)

// tensorMath is the arithmetic of a counter's types; false for the total over
// kinds of a chip that does not tell them apart.
func tensorMath(metric string) (target.Math, bool) {
	m := tensorPath.FindStringSubmatch(metric)
	if m == nil {
		return "", false
	}
	narrow := m[2] == "fp16"
	switch src := m[1]; {
	case src == "fp16" && narrow:
		return target.F16Acc16, true
	case src == "fp16", src == "fp16_bf16_tf32":
		return target.F16Acc32, true
	case src == "bf16":
		return target.BF16, true
	case src == "tf32":
		return target.TF32, true
	case src == "fp64":
		return target.F64Tensor, true
	case src == "int8":
		return target.I8, true
	case strings.HasPrefix(src, "fp4_fp6_fp8"), src == "fp8" && !narrow:
		return target.F8Acc32, true
	case src == "fp8":
		return target.F8Acc16, true
	case src == "fp4":
		return target.F4, true
	}
	return "", false
}

// hmmaFLOPs is what a tensor instruction of a V100 does: the only chip on which
// its counter has one meaning.
const (
	hmmaCounter = "sm__inst_executed_pipe_tensor.sum"
	hmmaFLOPs   = 512
)

// deviceMetrics describe the GPU in a raw page.
var deviceMetrics = map[string]bool{
	"device__attribute_display_name": true, "device__attribute_multiprocessor_count": true,
	"device__attribute_max_gpu_frequency_khz": true, "device__attribute_max_mem_frequency_khz": true,
	"device__attribute_global_memory_bus_width": true, "device__attribute_l2_cache_size": true,
}

// used says whether a metric's value can matter.
func used(metric string) bool {
	_, ok := dimensionOf[metric]
	return ok || deviceMetrics[metric] || tensorPath.MatchString(metric)
}

// dimensionOf gives every metric that the reader knows its dimension.
var dimensionOf = func() map[string]dimension {
	m := map[string]dimension{hmmaCounter: plain}
	add := func(s source) {
		for _, t := range s.terms {
			m[t.metric] = s.dim
		}
	}
	for _, ways := range sources {
		for _, s := range ways {
			add(s)
		}
	}
	for _, f := range vectorFLOPs {
		add(f.source)
	}
	for name := range busyParts {
		m[name] = percent
	}
	return m
}()
