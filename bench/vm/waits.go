package vm

import "fmt"

// describeWait says what a path waits for.
func (w *warp) describeWait(p *path) string {
	who := fmt.Sprintf("warp %d", w.number)
	if len(w.b.ctas) > 1 {
		who += fmt.Sprintf(" of block %v", w.cta.id)
	}
	if p.mask != w.live {
		who += fmt.Sprintf(" lanes %08x", p.mask)
	}
	at := ""
	if src := w.sourceIn(p.fr, p.wait.in); src.Pos.Line > 0 {
		at = fmt.Sprintf(" (line %d)", src.Pos.Line)
	}
	switch p.wait.kind {
	case waitBarrier:
		bar := &w.cta.bars[p.wait.id]
		if bar.need > 0 {
			return fmt.Sprintf("%s: barrier %d%s, where %d of %d threads are", who, p.wait.id, at, bar.threads, bar.need)
		}
		return fmt.Sprintf("%s: barrier %d%s", who, p.wait.id, at)
	case waitMbarrier:
		text := fmt.Sprintf("%s: phase %d of the mbarrier at %#x%s", who, p.wait.phase, w.b.address(uint64(p.wait.addr)), at)
		if m := w.b.mbarriers[p.wait.addr]; m != nil {
			text += ", where " + m.describe()
		}
		return text
	case waitCollective:
		return fmt.Sprintf("%s: other lanes at %s%s", who, p.wait.in.coll.name, at)
	case waitCluster:
		return fmt.Sprintf("%s: the cluster's barrier%s", who, at)
	}
	return who + ": asynchronous copies" + at
}
