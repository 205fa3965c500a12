package ncu

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline"
)

// collect joins the passes of launches and reduces each kernel to the mean of
// its launches.
func (r *Report) collect(all []*launch) error {
	number(all)
	joined, err := join(all)
	if err != nil {
		return err
	}
	unused := map[string]bool{}
	for _, l := range joined {
		for m := range l.metrics {
			if !used(m) && !identity[m] {
				unused[m] = true
			}
		}
		if r.Device == "" {
			r.Device = l.gpu()
		}
	}
	r.Unused = sorted(unused)
	var full []string
	for _, group := range byKernel(joined) {
		k, err := kernelOf(group)
		if err != nil {
			return err
		}
		r.Kernels, full = append(r.Kernels, *k), append(full, group[0].kernel)
	}
	for i, name := range distinct(full) {
		r.Kernels[i].Name = name
	}
	if len(r.Kernels) == 0 {
		return fmt.Errorf("no kernels: %d rows are of graphs or ranges", r.Skipped)
	}
	return nil
}

// gpu is the GPU's name, if the launch tells: a raw page has an attribute, the GUI a
// column, and the column Device holds a name or a number.
func (l *launch) gpu() string {
	for _, column := range []string{"device__attribute_display_name", "Device Name"} {
		if v, ok := l.metrics[column]; ok {
			return v.text
		}
	}
	if strings.Trim(l.device, "0123456789") == "" || absent(l.device) {
		return ""
	}
	return l.device
}

// number counts the launches of a kernel in each process of each table. IDs do
// not do: they count all kernels, and start anew in every process.
func number(all []*launch) {
	next := map[string]int{}
	for _, l := range all {
		key := fmt.Sprint(l.first.file, "\x00", l.table, "\x00", l.process, "\x00", l.device, "\x00", l.kernel)
		l.ordinal = next[key]
		next[key]++
	}
}

// join puts the metrics of different passes of the same launch together: those
// with the same kernel and ordinal, from another table or process, that measured
// other things.
func join(all []*launch) ([]*launch, error) {
	var out []*launch
	places := map[string][]*launch{}
	for _, l := range all {
		key := fmt.Sprintf("%s\x00%d", l.kernel, l.ordinal)
		i := slices.IndexFunc(places[key], func(known *launch) bool { return passes(known, l) })
		if i < 0 {
			places[key] = append(places[key], l)
			out = append(out, l)
			continue
		}
		if err := places[key][i].merge(l); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// passes says whether two launches are passes of one: each measured something
// that the other did not, and what both have is not what a repeated measurement
// repeats, or agrees.
func passes(a, b *launch) bool {
	if a.first.file == b.first.file && a.table == b.table && a.process == b.process {
		return false
	}
	news, shared := 0, 0
	for m := range b.metrics {
		if !used(m) || deviceMetrics[m] {
			continue
		}
		if _, ok := a.metrics[m]; ok {
			shared++
		} else {
			news++
		}
	}
	// Passes may share what every pass has: time and cycles.
	for _, m := range timeMetrics {
		_, inA := a.metrics[m]
		if _, inB := b.metrics[m]; inA && inB {
			shared--
		}
	}
	return news > 0 && shared == 0
}

// timeMetrics are what counting instructions slows down.
var timeMetrics = func() []string {
	var out []string
	for _, q := range []quantity{timeUS, cycles, clockHz} {
		for _, s := range sources[q] {
			out = append(out, s.terms[0].metric)
		}
	}
	return out
}()

// merge takes another pass' metrics in. The time is that of the pass that counted
// no instructions.
func (l *launch) merge(o *launch) error {
	slow := l.counts() && !o.counts()
	for _, m := range sorted(o.metrics) {
		v := o.metrics[m]
		if l.notation != o.notation && isNumeric(v.text) {
			n, err := o.notation.parse(v.text)
			if err != nil {
				return v.errorf("metric %s: %w", m, err)
			}
			v.text = plainNumber(n, l.notation)
		}
		if _, ok := l.metrics[m]; !ok || slow && slices.Contains(timeMetrics, m) {
			l.metrics[m] = v
		}
	}
	return nil
}

// plainNumber writes a number in a notation, without separators.
func plainNumber(v float64, n notation) string {
	s := fmt.Sprintf("%f", v)
	if n == comma {
		s = strings.ReplaceAll(s, ".", ",")
	}
	return s
}

// counts says whether the launch's pass counted instructions in SASS, which
// slows a kernel down by much.
func (l *launch) counts() bool {
	for m := range l.metrics {
		if strings.Contains(m, "sass_thread_inst_executed") {
			return true
		}
	}
	return false
}

func byKernel(all []*launch) [][]*launch {
	var out [][]*launch
	place := map[string]int{}
	for _, l := range all {
		i, ok := place[l.kernel]
		if !ok {
			i = len(out)
			place[l.kernel] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], l)
	}
	return out
}

// mostCounted is more than a counter holds: one that reads as much ran over.
const mostCounted = 1 << 63

// number returns a metric's value in base units.
func (l *launch) number(metric string, dim dimension) (float64, bool, error) {
	v, ok := l.metrics[metric]
	if !ok || !isNumeric(v.text) {
		if ok && !absent(v.text) {
			return 0, false, v.errorf("metric %s: %q: want a number", metric, v.text)
		}
		return 0, false, nil
	}
	n, err := l.notation.parse(v.text)
	if err == nil {
		n, err = convert(n, v.unit, dim)
	}
	if err == nil && !(n >= 0 && n < mostCounted) {
		err = fmt.Errorf("%s %s: want a number from 0 to what a counter of 64 bits holds", v.text, v.unit)
	}
	if err != nil {
		if !fits(metric, v) && !strings.Contains(metric, "__") {
			return 0, false, nil // a label's other row
		}
		return 0, false, v.errorf("metric %s: %w", metric, err)
	}
	return n, true, nil
}

// from computes a source's quantity; false if a metric of it is missing.
func (l *launch) from(s source) (float64, bool, error) {
	total := 0.0
	for _, t := range s.terms {
		v, ok, err := l.number(t.metric, s.dim)
		if err != nil || !ok {
			return 0, false, err
		}
		total += v * t.factor
	}
	return total, true, nil
}

// quantity is the first of its sources that is there.
func (l *launch) quantity(q quantity) (float64, bool, error) {
	for _, s := range sources[q] {
		v, ok, err := l.from(s)
		if ok || err != nil {
			return v, ok, err
		}
	}
	return 0, false, nil
}

// mean is the launches' mean of what get finds in each, 0 where none has it. It refuses a quantity
// that only some of them have: a sum of some over the time of all is wrong.
func mean(group []*launch, name string, get func(*launch) (float64, bool, error)) (float64, error) {
	sum, n := 0.0, 0
	for _, l := range group {
		v, ok, err := get(l)
		if err != nil {
			return 0, err
		}
		if ok {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return 0, nil
	}
	if n < len(group) {
		return 0, group[0].first.errorf("kernel %s: %s in %d of %d launches: want it in all", short(group[0].kernel), name, n, len(group))
	}
	return sum / float64(n), nil
}

// quantityNames are for errors.
var quantityNames = [quantities]string{
	"a time", "cycles", "a clock", "bytes of memory", "memory's rate", "bytes of the L2", "wavefronts of shared memory", "bank conflicts",
	"warp instructions", "instructions of the transcendental pipe", "instructions of the FMA pipe", "instructions of the ALU pipe",
	"occupancy", "waves", "a hit rate", "bytes of local memory", "load requests", "load sectors", "store requests", "store sectors",
}

// kernelOf reduces a kernel's launches.
func kernelOf(group []*launch) (*roofline.Kernel, error) {
	var q [quantities]float64
	for i := range quantities {
		v, err := mean(group, quantityNames[i], func(l *launch) (float64, bool, error) { return l.quantity(i) })
		if err != nil {
			return nil, err
		}
		q[i] = v
	}
	first := &group[0].first
	name := short(group[0].kernel)
	if q[timeUS] == 0 && q[clockHz] > 0 {
		q[timeUS] = q[cycles] / q[clockHz] * 1e6
	}
	if q[timeUS] == 0 {
		return nil, first.errorf("kernel %s: no time, or one of 0: want gpu__time_duration.sum, or sm__cycles_elapsed.avg with sm__cycles_elapsed.avg.per_second", name)
	}
	if q[dramBytes] == 0 {
		q[dramBytes] = q[dramRate] * q[timeUS] / 1e6
	}
	count := func(v float64) roofline.Count {
		if v == 0 {
			return roofline.Count{}
		}
		return roofline.Counted(v)
	}
	k := &roofline.Kernel{
		Name: name, At: fmt.Sprintf("%s:%d", first.file, first.line), Launches: len(group), TimeUS: q[timeUS], From: bench.Measured, ClockMHz: q[clockHz] / 1e6,
		Work: roofline.Work{
			HBMBytes: count(q[dramBytes]), L2Bytes: count(q[l2Bytes]), SharedBytes: count(q[wavefronts] * wavefrontBytes),
			MUFU: count(q[mufu]), FMA: count(q[fma]), ALU: count(q[alu]), Issue: count(q[warpInstructions]),
		},
		Seen: roofline.Seen{
			Loads: roofline.Access{Requests: q[loadRequests], Sectors: q[loadSectors]}, Stores: roofline.Access{Requests: q[storeRequests], Sectors: q[storeSectors]},
			Wavefronts: q[wavefronts], IdealWavefronts: max(q[wavefronts]-q[conflicts], 0),
			Occupancy: q[occupancy], Waves: q[waves], HitRate: q[hitRate], Spilled: q[spilled],
		},
	}
	var err error
	if k.Work.Operations, err = operations(group); err != nil {
		return nil, err
	}
	return k, nil
}

// operations are the useful operations of every kind that was counted.
func operations(group []*launch) ([]roofline.Operations, error) {
	var out []roofline.Operations
	add := func(o roofline.Operations) {
		if o.Count.Value == 0 {
			return
		}
		for i := range out {
			if out[i].Math == o.Math {
				out[i].Count.Value += o.Count.Value
				return
			}
		}
		out = append(out, o)
	}
	for i, f := range vectorFLOPs {
		if slices.ContainsFunc(vectorFLOPs[:i], func(g flops) bool { return g.math == f.math && has(out, f.math) }) {
			continue // the same by the other prefix
		}
		v, err := mean(group, string(f.math)+" instructions", func(l *launch) (float64, bool, error) { return l.some(f.source) })
		if err != nil {
			return nil, err
		}
		add(roofline.Operations{Math: f.math, Count: roofline.Counted(v)})
	}
	for _, m := range sorted(group[0].metrics) {
		math, ok := tensorMath(m)
		each := 1.0
		if m == hmmaCounter && group[0].isVolta() {
			math, each, ok = "fp16_acc32", hmmaFLOPs, true
		}
		if !ok || group[0].hasTotal(m) {
			continue
		}
		v, err := mean(group, m, func(l *launch) (float64, bool, error) { return l.number(m, plain) })
		if err != nil {
			return nil, err
		}
		add(roofline.Operations{Math: math, Count: roofline.Counted(v * each)})
	}
	return out, nil
}

// variant matches the end of a counter that counts a part of another.
var variant = regexp.MustCompile(`(_sparsity_(on|off)|_dst_fp(16|32)(_sparsity_(on|off))?)\.sum$`)

// hasTotal says whether the launch has a counter of which this one's is a part.
func (l *launch) hasTotal(metric string) bool {
	for part := metric; variant.MatchString(part); {
		i := strings.LastIndex(part, "_sparsity_")
		if i < 0 {
			i = strings.LastIndex(part, "_dst_")
		}
		part = part[:i] + ".sum"
		if v, ok := l.metrics[part]; ok && isNumeric(v.text) {
			return true
		}
	}
	return false
}

func has(ops []roofline.Operations, m any) bool {
	return slices.ContainsFunc(ops, func(o roofline.Operations) bool { return any(o.Math) == m })
}

// some sums those of a source's metrics that are there: a kernel without
// multiplications is profiled without their counter.
func (l *launch) some(s source) (float64, bool, error) {
	total, any := 0.0, false
	for _, t := range s.terms {
		v, ok, err := l.number(t.metric, s.dim)
		if err != nil {
			return 0, false, err
		}
		total, any = total+v*t.factor, any || ok
	}
	return total, any, nil
}

// isVolta says whether the launch was on a chip whose tensor instructions all do
// the same.
func (l *launch) isVolta() bool {
	cc := l.metrics["CC"].text
	return cc == "7.0" || cc == ""
}
