package vm

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// faultKey is what makes two faults one report.
type faultKey struct {
	class     bench.FaultClass
	in, other *ptx.Instruction
}

// faultList collects the faults of a block, or of a launch.
type faultList struct {
	list  []bench.Fault
	index map[faultKey]int
	keys  []faultKey
	most  int // kinds to keep
	more  int // kinds that were not kept

	recent [16]recentFault // of index: programs that do wrong do so in loops
}

// recentFault is a key and its place in the list.
type recentFault struct {
	key faultKey
	at  int
}

// again counts a fault that needs no description: one that was seen before, or
// of a kind for which there is no room. It is what a fault costs in a loop.
func (l *faultList) again(k faultKey, count int64) bool {
	if len(l.list) == 0 {
		return false
	}
	r := &l.recent[(uintptr(unsafe.Pointer(k.in))>>4^uintptr(unsafe.Pointer(k.other))>>6^uintptr(len(k.class)))%uintptr(len(l.recent))]
	if r.key == k {
		l.list[r.at].Count += count
		return true
	}
	if i, ok := l.index[k]; ok {
		*r = recentFault{k, i}
		l.list[i].Count += count
		return true
	}
	if len(l.list) < l.most {
		return false
	}
	l.more++
	return true
}

// add counts a fault that was seen before; otherwise it returns where to
// describe it, nil when there are enough.
func (l *faultList) add(k faultKey, count int64) *bench.Fault {
	if l.again(k, count) {
		return nil
	}
	if l.index == nil {
		l.index = map[faultKey]int{}
	}
	l.index[k] = len(l.list)
	l.keys = append(l.keys, k)
	l.list = append(l.list, bench.Fault{Class: k.class, Count: count})
	return &l.list[len(l.list)-1]
}

// merge adds another list's faults, in their order.
func (l *faultList) merge(o *faultList) {
	for i, k := range o.keys {
		if f := l.add(k, o.list[i].Count); f != nil {
			*f = o.list[i]
		}
	}
	l.more += o.more
}

// has says whether some fault is of a class.
func (l *faultList) has(class bench.FaultClass) bool {
	for _, k := range l.keys {
		if k.class == class {
			return true
		}
	}
	return false
}

// causes drops what follows from threads that passed a barrier without their mates: they
// read and write what those did not come to yet.
func (l *faultList) causes() {
	if !l.has(bench.BarrierDivergence) {
		return
	}
	kept := faultList{most: l.most, more: l.more}
	for i, k := range l.keys {
		if k.class == bench.SharedRace || k.class == bench.UninitialisedSharedRead {
			continue
		}
		if f := kept.add(k, l.list[i].Count); f != nil {
			*f = l.list[i]
		}
	}
	*l = kept
}

// names says whether some fault of a class is of an instruction, on either side.
func (l *faultList) names(class bench.FaultClass, in *ptx.Instruction) bool {
	for _, k := range l.keys {
		if k.class == class && (k.in == in || k.other == in) {
			return true
		}
	}
	return false
}

// site is a place in a module's text.
type site struct {
	mod *module
	in  *ptx.Instruction
}

// site describes a thread at an instruction.
func (b *block) site(warp, lane int, in *ptx.Instruction) bench.Site {
	var s bench.Site
	s.Block, s.Thread = b.l.siteOf(b.order, warp, lane)
	b.l.mod.locate(&s, in)
	return s
}

// locate fills in where an instruction stands.
func (m *module) locate(s *bench.Site, in *ptx.Instruction) {
	if in == nil {
		return
	}
	s.Line = int(in.Pos.Line)
	s.PTX = opcode(in)
	if in.Loc != nil && in.Loc.Line > 0 { // 0: the compiler's own, of no line
		if name, ok := m.files[in.Loc.File]; ok {
			s.Source = fmt.Sprintf("%s:%d", name, in.Loc.Line)
		}
	}
}

// source is the PTX instruction that a decoded one is from.
func (w *warp) source(in *inst) *ptx.Instruction {
	if in.pc < 0 {
		return nil
	}
	return w.fr.prog.fn.Code[in.pc]
}

// again counts a misdeed at an instruction where the like was reported before;
// false where it is to be described.
func (w *warp) again(class bench.FaultClass, in *inst) bool {
	return w.b.faults.again(faultKey{class: class, in: w.source(in)}, 1) || !w.b.l.reports(class)
}

// fault reports a misdeed of one lane at an instruction.
func (w *warp) fault(class bench.FaultClass, in *inst, lane int, format string, args ...any) {
	w.faultAt(class, in, lane, nil, "", format, args...)
}

// faultAt is fault with an address in a space.
func (w *warp) faultAt(class bench.FaultClass, in *inst, lane int, addr *uint64, space string, format string, args ...any) {
	w.faultIn(&w.b.faults, class, in, lane, addr, space, format, args...)
}

// faultIn is faultAt for a list of faults, such as of those that are held back.
func (w *warp) faultIn(l *faultList, class bench.FaultClass, in *inst, lane int, addr *uint64, space string, format string, args ...any) {
	if !w.b.l.reports(class) {
		return
	}
	src := w.source(in)
	f := l.add(faultKey{class: class, in: src}, 1)
	if f == nil {
		return
	}
	f.Kernel = w.b.l.prog.name
	f.Site = w.b.site(w.index, lane, src)
	if addr != nil {
		a := *addr
		f.Address, f.Space = &a, space
	}
	f.Message = fmt.Sprintf(format, args...)
}

// reports says whether a class is looked for.
func (l *launch) reports(class bench.FaultClass) bool { return l.checks.has(l.dev.classBit[class]) }

// threadID is a thread's index in its block, from its number.
func (l *launch) threadID(n int) [3]uint32 {
	x, y := l.block[0], l.block[1]
	t := uint32(n)
	return [3]uint32{t % x, t / x % y, t / (x * y)}
}

// counts adds a tally up: instructions at each place of the PTX function.
func (t *tally) counts(p *program, each func(pc int32, in *ptx.Instruction, warps, threads int64)) {
	var warps, threads int64
	for i := range p.code {
		warps += t.warps[i]
		threads += t.threads[i]
		if pc := p.code[i].pc; pc >= 0 && warps != 0 {
			each(pc, p.fn.Code[pc], warps, threads)
		}
	}
}

func popcount(m uint32) int64 { return int64(bits.OnesCount32(m)) }
