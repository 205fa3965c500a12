package vm

import "fmt"

// describeWait says who waits and for what.
func (w *warp) describeWait(p *path) string {
	who := fmt.Sprintf("warp %d", w.number)
	if len(w.b.ctas) > 1 {
		who += fmt.Sprintf(" of block %v", w.cta.id)
	}
	if p.mask != w.live {
		who += fmt.Sprintf(" lanes %08x", p.mask)
	}
	return who + ": " + w.awaited(p)
}

// awaited is what a path waits for.
func (w *warp) awaited(p *path) string {
	at := ""
	if src := w.sourceIn(p.fr, p.wait.in); src.Pos.Line > 0 {
		at = fmt.Sprintf(" (line %d)", src.Pos.Line)
	}
	switch p.wait.kind {
	case waitBarrier:
		bar := &w.cta.bars[p.wait.id]
		if bar.need > 0 {
			return fmt.Sprintf("barrier %d%s, where %d of %d threads are", p.wait.id, at, bar.threads, bar.need)
		}
		return fmt.Sprintf("barrier %d%s", p.wait.id, at)
	case waitMbarrier:
		text := fmt.Sprintf("phase %d of the mbarrier at %#x%s", p.wait.phase, w.b.address(uint64(p.wait.addr)), at)
		if m := w.b.mbarriers[p.wait.addr]; m != nil {
			text += ", where " + m.describe()
		}
		return text
	case waitCollective:
		return fmt.Sprintf("other lanes at %s%s", p.wait.in.coll.name, at)
	case waitTensor:
		return w.awaitedTensor(p) + at
	case waitRegisters:
		return w.awaitedRegisters(p.wait.in) + at
	case waitCluster:
		return fmt.Sprintf("the cluster's barrier%s", at)
	}
	return "asynchronous copies" + at
}
