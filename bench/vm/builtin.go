package vm

import "strings"

// builtin is a function that the driver provides.
type builtin func(w *warp, in *inst, lanes uint32)

var builtins = map[string]builtin{
	"vprintf":      printf,
	"__assertfail": assertFail,
}

func callBuiltin(w *warp, in *inst) {
	if m := w.condition(in); m != 0 {
		in.call.builtin(w, in, m)
	}
	if w.stop == running {
		w.pc++
	}
}

// argument reads an argument of a call in one lane.
func (w *warp) argument(in *inst, i, lane int) uint64 {
	if i >= len(in.call.args) {
		return 0
	}
	a := in.call.args[i]
	at := int64(lane)*w.localSize + w.fr.local + a.offset
	return readElement(w.local[at:], int(min(a.v.Size(), 8)))
}

// result writes what a call gives back in one lane, if anybody asks for it.
func (w *warp) result(in *inst, lane int, v uint64) {
	if len(in.call.results) == 0 {
		return
	}
	r := in.call.results[0]
	at, n := int64(lane)*w.localSize+w.fr.local+r.offset, int(min(r.v.Size(), 8))
	writeElement(w.local[at:], n, v)
	if w.localUndef != nil {
		w.localUndef.define(uint64(at), n)
	}
}

// text reads a string from a generic address as a lane sees it.
func (w *warp) text(lane int, addr uint64) string {
	var b strings.Builder
	for b.Len() < 1<<12 {
		p := w.genericBytes(lane, addr+uint64(b.Len()), 1)
		if p == nil || p[0] == 0 {
			break
		}
		b.WriteByte(p[0])
	}
	return b.String()
}

// genericBytes is memory at a generic address as a lane sees it; nil if there
// is none.
func (w *warp) genericBytes(lane int, addr uint64, n int) []byte {
	switch {
	case addr-localWindow < windowSize:
		off := addr - localWindow
		if off+uint64(n) <= uint64(w.localSize) {
			return w.local[uint64(lane)*uint64(w.localSize)+off:][:n]
		}
	case addr-sharedWindow < windowSize:
		if off, c := w.find(addr-sharedWindow, n, true); c != nil {
			return w.b.shared[off:][:n]
		}
	default:
		a := w.b.l.dev.mem.find(addr)
		if a == nil || addr < a.addr || addr-a.addr+uint64(n) > uint64(a.size) {
			return nil
		}
		if p := w.pageOf(addr, n); p != nil {
			return p.data[addr&shadowMask:][:n]
		}
		return a.data[addr-a.addr:][:n]
	}
	return nil
}

// assertFail is __assertfail(message, file, line, function, char size): it ends
// the launch.
func assertFail(w *warp, in *inst, lanes uint32) {
	lane := firstLane(lanes)
	w.fail(in, lane, "assertion %q failed at %s:%d",
		w.text(lane, w.argument(in, 0, lane)), w.text(lane, w.argument(in, 1, lane)), uint32(w.argument(in, 2, lane)))
}
