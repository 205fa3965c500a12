package ncu

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline"
)

// collect joins the passes of launches and reduces each kernel to the mean of
// its launches.
func (r *Report) collect(all []*launch) error {
	if err := r.oneGPU(all); err != nil {
		return err
	}
	number(all)
	joined := join(all)
	r.Unused = slices.Sorted(maps.Keys(r.unused))
	volta := r.isVolta()
	groups := byKernel(joined)
	r.Kernels = make([]roofline.Kernel, 0, len(groups))
	full := make([]string, 0, len(groups))
	for _, group := range groups {
		k, err := kernelOf(group, volta)
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

// number counts the launches of a kernel in each process of each table. IDs do
// not do: they count all kernels, and start anew in every process.
func number(all []*launch) {
	type origin struct {
		file                    string
		table                   int
		process, device, kernel string
	}
	next := make(map[origin]int, len(all))
	for _, l := range all {
		o := origin{l.first.file, l.table, l.process, l.device, l.kernel}
		l.ordinal = next[o]
		next[o]++
	}
}

// join puts the metrics of different passes of the same launch together: those
// with the same kernel and ordinal, from another table or process, that measured
// other things.
func join(all []*launch) []*launch {
	type nth struct {
		kernel  string
		ordinal int
	}
	var out []*launch
	places := make(map[nth][]*launch, len(all))
	for _, l := range all {
		key := nth{l.kernel, l.ordinal}
		i := slices.IndexFunc(places[key], func(known *launch) bool { return passes(known, l) })
		if i < 0 {
			places[key] = append(places[key], l)
			out = append(out, l)
			continue
		}
		places[key][i].merge(l)
	}
	return out
}

// passes says whether two launches are passes of one: each measured something
// that the other did not, and what both have is not what a repeated measurement
// repeats, or agrees.
func passes(a, b *launch) bool {
	if a.first.file == b.first.file && a.table == b.table && a.process == b.process {
		return false
	}
	news, shared := 0, 0
	for _, e := range b.metrics {
		if e.name == deviceName || deviceMetrics[e.name] {
			continue
		}
		if a.metrics.get(e.name) != nil {
			shared++
		} else {
			news++
		}
	}
	// Passes may share what every pass has: time, cycles and how busy the GPU was.
	for _, m := range timeMetrics {
		if a.metrics.get(m) != nil && b.metrics.get(m) != nil {
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
	return append(out, slices.Sorted(maps.Keys(busyParts))...)
}()

// merge takes another pass' metrics in. The time is that of the pass that counted
// no instructions.
func (l *launch) merge(o *launch) {
	slow := l.counts() && !o.counts()
	for _, e := range o.metrics {
		old := l.metrics.get(e.name)
		switch {
		case old == nil:
			l.metrics = append(l.metrics, e)
		case slow && slices.Contains(timeMetrics, e.name):
			*old = e.value
		}
	}
}

// counts says whether the launch's pass counted instructions in SASS, which
// slows a kernel down by much.
func (l *launch) counts() bool {
	return slices.ContainsFunc(l.metrics, func(e entry) bool { return strings.Contains(e.name, "sass_thread_inst_executed") })
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

// mostPercent bounds shares: counters of two passes, which a share is of, may differ by
// some tenths of a percent.
const mostPercent = 101

// number returns a metric's value in base units.
func (l *launch) number(metric string, dim dimension) (float64, bool, error) {
	v := l.metrics.get(metric)
	switch {
	case v == nil:
		return 0, false, nil
	case !isNumeric(v.text):
		return 0, false, v.errorf("metric %s: %q: want a number", metric, v.text)
	}
	n, err := v.notation.parse(v.text)
	if err == nil {
		n, err = convert(n, v.unit, dim)
	}
	if err == nil && !(n >= 0 && n < mostCounted) {
		err = fmt.Errorf("%s %s: want a number from 0 to what a counter of 64 bits holds", v.text, v.unit)
	}
	if err == nil && dim == percent && n > mostPercent {
		err = fmt.Errorf("%s %%: want a share from 0 to 100", v.text)
	}
	if err != nil {
		if !fits(metric, *v) && !strings.Contains(metric, "__") {
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

// above0 takes a 0 of what no launch has none of for no value.
func above0(v float64, ok bool, err error) (float64, bool, error) { return v, ok && v > 0, err }

// time is in microseconds, by cycles where none was measured.
func (l *launch) time() (float64, bool, error) {
	if us, ok, err := above0(l.quantity(timeUS)); ok || err != nil {
		return us, ok, err
	}
	n, ok, err := above0(l.quantity(cycles))
	if !ok {
		return 0, false, err
	}
	hz, ok, err := above0(l.quantity(clockHz))
	if !ok {
		return 0, false, err
	}
	return n / hz * 1e6, true, nil
}

// memory is the bytes of memory, by its rate where they were not counted.
func (l *launch) memory() (float64, bool, error) {
	if bytes, ok, err := above0(l.quantity(dramBytes)); ok || err != nil {
		return bytes, ok, err
	}
	perSecond, ok, err := l.quantity(dramRate)
	if !ok {
		return l.quantity(dramBytes)
	}
	us, ok, err := l.time()
	return perSecond * us / 1e6, ok, err
}

// find is a quantity, or what gives it.
func (l *launch) find(q quantity) (float64, bool, error) {
	switch q {
	case timeUS:
		return l.time()
	case dramBytes:
		return l.memory()
	case cycles, clockHz:
		return above0(l.quantity(q))
	}
	return l.quantity(q)
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
	"a time above 0", "cycles", "a clock above 0", "bytes of memory", "memory's rate", "bytes of the L2", "wavefronts of shared memory", "bank conflicts",
	"warp instructions", "instructions of the transcendental pipe", "instructions of the FMA pipe", "instructions of the ALU pipe",
	"occupancy", "waves", "a hit rate", "bytes of local memory", "load requests", "load sectors", "store requests", "store sectors",
}

// kernelOf reduces a kernel's launches.
func kernelOf(group []*launch, volta bool) (*roofline.Kernel, error) {
	var q [quantities]float64
	for i := range quantities {
		v, err := mean(group, quantityNames[i], func(l *launch) (float64, bool, error) { return l.find(i) })
		if err != nil {
			return nil, err
		}
		q[i] = v
	}
	first := &group[0].first
	name := short(group[0].kernel)
	if q[timeUS] == 0 {
		return nil, first.errorf("kernel %s: no time, or one of 0: want gpu__time_duration.sum, or sm__cycles_elapsed.avg with sm__cycles_elapsed.avg.per_second", name)
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
	if k.Work.Operations, err = operations(group, volta); err != nil {
		return nil, err
	}
	k.Seen.Busy, err = busy(group)
	return k, err
}
