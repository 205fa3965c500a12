package vm

import (
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// How long a launch may run is counted in steps and not in seconds, so that a
// program without an end is stopped at the same place everywhere. A step is an
// instruction of a warp. Starting a block counts as the steps that take about
// as long, so that a grid of very many empty blocks is stopped too.
//
// A block counts its steps from when it last gave its turn away. Those of
// others are added in the order of turns: at the end of a block, and where one
// that polls gives its turn away.

// DefaultSteps is how many steps a launch may take where nothing else is said.
const DefaultSteps = 1 << 30

const (
	blockSteps = 128
	warpSteps  = 64
)

// crowded is how many asynchronous operations of a kind, or groups of them, a block or
// a thread may have at a time that nobody has waited for before each more of them counts
// as crowdSteps, once for as many as there are: so that what a launch remembers of them
// stays in bounds, and the time to look through it.
const (
	crowded    = 1 << 12
	crowdSteps = 1 << 10
	rowSteps   = 1 << 6 // and of each row of a box
)

// crowd counts an operation that begins where n are that nobody has waited for, and
// ends the warp's share, so that the limit is looked at.
func (w *warp) crowd(n, rows int) {
	if n >= crowded {
		w.b.steps += (crowdSteps + rowSteps*int64(rows)) * int64(n/crowded)
		w.limit = 0
	}
}

// startSteps is what starting a block counts.
func (l *launch) startSteps() int64 {
	return int64(l.ctas) * (blockSteps + warpSteps*int64((l.threads+warpSize-1)/warpSize) + l.sharedSize/128)
}

// slice runs a warp for its share and counts its steps.
func (b *block) slice(w *warp) stop {
	before := w.executed
	why := w.slice()
	b.steps += w.executed - before
	return why
}

// spent ends a launch that has taken its steps while the block ran: that is a fault, or,
// where others may be why, added to the last of them. The launch's lock is held.
func (b *block) spent(steps int64) {
	if b.blames() {
		b.l.cut = steps
	} else {
		b.endless(steps)
	}
}

// cutShort adds to the last fault that the launch did not come to its end.
func (l *launch) cutShort(faults []bench.Fault) {
	if n := len(faults); l.cut > 0 && n > 0 {
		faults[n-1].Message += fmt.Sprintf("; the launch had no end after %d warp instructions", l.cut)
	}
}

// endless reports that a launch has taken its steps while the block ran, and
// where the block and those that wait for it stand.
func (b *block) endless(steps int64) {
	l := b.l
	text := []string{b.stands()}
	more := 0
	for _, order := range l.ring {
		r := l.resident[order]
		switch {
		case !r.gaveWay || r.b == nil || r.b == b:
		case len(text) < 4:
			text = append(text, r.b.stands())
		default:
			more++
		}
	}
	if more > 0 {
		text = append(text, fmt.Sprintf("%d more blocks", more))
	}
	w, lane, src := b.foremost()
	if f := b.faults.add(faultKey{class: bench.Deadlock, in: src}, 1); f != nil {
		f.Kernel = l.prog.name
		f.Site = b.site(w, lane, src)
		f.Message = fmt.Sprintf("no end after %d warp instructions: %s", steps, strings.Join(text, "; "))
	}
}

// tooMany is the error of a launch of more blocks than its steps let run: no fault,
// since each of them comes to its end.
func (l *launch) tooMany(what string, most int64) error {
	return fmt.Errorf("%s: want at most %d in a launch of %d steps, of which starting one takes %d: fewer blocks, --blocks or more --max-steps", what, most, l.maxSteps, l.startSteps())
}

// interrupt ends a launch that has taken its steps at the end of a block, with others
// still to come. Faults found until then are its result.
func (l *launch) interrupt() {
	if l.err == nil && len(l.faults.list) == 0 {
		l.err = fmt.Errorf("kernel %s: %w", l.prog.name, l.tooMany(fmt.Sprintf("%d blocks, of which %d have run in %d steps", l.total, l.done, l.steps), l.done))
	}
	l.abort.Store(true)
}

// foremost is a thread of the block that is still at work, and where.
func (b *block) foremost() (warp, lane int, src *ptx.Instruction) {
	for _, w := range b.warps {
		if w.mask != 0 {
			return w.index, firstLane(w.mask), sourceFrom(w.fr.prog, w.pc)
		}
		for i := range w.paths {
			if p := &w.paths[i]; p.wait.kind == waitNothing {
				return w.index, firstLane(p.mask), sourceFrom(p.fr.prog, p.pc)
			}
		}
	}
	return 0, 0, nil
}

// sourceFrom is the PTX instruction at a place of a program or, where decoding
// added something, the one after.
func sourceFrom(p *program, pc int32) *ptx.Instruction {
	for ; pc >= 0 && int(pc) < len(p.code); pc++ {
		if at := p.code[pc].pc; at >= 0 && int(at) < len(p.fn.Code) {
			return p.fn.Code[at]
		}
	}
	return nil
}

// stands says where a block's warps are: those at the same place together.
func (b *block) stands() string {
	var places []string
	warps := map[string][]int{}
	for _, w := range b.warps {
		text := w.stands()
		if text == "" {
			continue
		}
		if warps[text] == nil {
			places = append(places, text)
		}
		warps[text] = append(warps[text], w.index)
	}
	if len(places) > 4 {
		places = append(places[:4], "")
	}
	for i, text := range places {
		if text == "" {
			places[i] = "others elsewhere"
			continue
		}
		list := warps[text]
		who := fmt.Sprintf("warp %d", list[0])
		if n := len(list); n > 1 {
			who = fmt.Sprintf("%d warps from %d to %d", n, list[0], list[n-1])
		}
		places[i] = who + " " + text
	}
	if places == nil {
		places = []string{"has ended"}
	}
	who := "block"
	if len(b.ctas) > 1 {
		who = fmt.Sprintf("cluster of %d blocks from", len(b.ctas))
	}
	return fmt.Sprintf("%s %v: %s", who, b.ctas[0].id, strings.Join(places, ", "))
}

// stands says where a warp's paths are, "" of one that has ended.
func (w *warp) stands() string {
	var all []string
	add := func(fr *frame, pc int32, mask uint32) {
		text := "at an unknown line"
		if src := sourceFrom(fr.prog, pc); src != nil {
			text = fmt.Sprintf("at line %d", src.Pos.Line)
		}
		if mask != w.live {
			text = fmt.Sprintf("lanes %08x %s", mask, text)
		}
		all = append(all, text)
	}
	if w.mask != 0 {
		add(w.fr, w.pc, w.mask)
	}
	for i := range w.paths {
		p := &w.paths[i]
		if p.wait.kind == waitNothing || p.wait.in == nil {
			add(p.fr, p.pc, p.mask)
			continue
		}
		what := "waiting for " + w.awaited(p)
		if p.mask != w.live {
			what = fmt.Sprintf("lanes %08x %s", p.mask, what)
		}
		all = append(all, what)
	}
	if len(all) > 4 {
		all = append(all[:4], "...")
	}
	return strings.Join(all, " and ")
}
