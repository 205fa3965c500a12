package vm

import (
	"fmt"
	"math"
	"strings"
)

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

// text reads a string from a generic address.
func (w *warp) text(addr uint64) string {
	var b strings.Builder
	for b.Len() < 1<<12 {
		p := w.genericBytes(0, addr+uint64(b.Len()), 1)
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
		if p := w.pageOf(addr); p != nil && int(addr&shadowMask)+n <= p.n {
			return p.data[addr&shadowMask:][:n]
		}
		return a.data[addr-a.addr:][:n]
	}
	return nil
}

// maxPrinted bounds what a block may print.
const maxPrinted = 1 << 16

// printf is vprintf(format, arguments): the arguments lie one after the other,
// each at its own alignment.
func printf(w *warp, in *inst, lanes uint32) {
	for l := lanes; l != 0; l &= l - 1 {
		lane := firstLane(l)
		format := w.text(w.argument(in, 0, lane))
		if w.b.printed.Len() < maxPrinted {
			w.b.printed.WriteString(w.format(format, w.argument(in, 1, lane), lane))
		}
	}
}

// format fills in a C format.
func (w *warp) format(format string, args uint64, lane int) string {
	var out strings.Builder
	at := args
	next := func(size uint64) uint64 {
		at = (at + size - 1) &^ (size - 1)
		p := w.genericBytes(lane, at, int(size))
		at += size
		if p == nil {
			return 0
		}
		return readElement(p, int(size))
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out.WriteByte(format[i])
			continue
		}
		j := i + 1
		for j < len(format) && strings.IndexByte("-+ #0123456789.", format[j]) >= 0 {
			j++
		}
		flags := format[i+1 : j]
		long := false
		for j < len(format) && strings.IndexByte("hlLqjzt", format[j]) >= 0 {
			long = long || format[j] != 'h'
			j++
		}
		if j == len(format) {
			break
		}
		if len(flags) > 8 {
			flags = ""
		}
		size := uint64(4)
		if long {
			size = 8
		}
		switch c := format[j]; c {
		case '%':
			out.WriteByte('%')
		case 'd', 'i':
			v := next(size)
			fmt.Fprintf(&out, "%"+flags+"d", extend(v, int(8*size)))
		case 'u':
			fmt.Fprintf(&out, "%"+flags+"d", next(size))
		case 'x', 'X', 'o':
			fmt.Fprintf(&out, "%"+flags+string(c), next(size))
		case 'c':
			fmt.Fprintf(&out, "%"+flags+"c", rune(next(4)&0xff))
		case 'p':
			fmt.Fprintf(&out, "%#x", next(8))
		case 's':
			fmt.Fprintf(&out, "%"+flags+"s", w.text(next(8)))
		case 'f', 'F', 'e', 'E', 'g', 'G':
			fmt.Fprintf(&out, "%"+flags+string(c), math.Float64frombits(next(8)))
		default:
			out.WriteString(format[i : j+1])
		}
		i = j
	}
	return out.String()
}

// assertFail is __assertfail(message, file, line, function, char size): it ends
// the launch.
func assertFail(w *warp, in *inst, lanes uint32) {
	lane := firstLane(lanes)
	w.fail(in, lane, "assertion %q failed at %s:%d",
		w.text(w.argument(in, 0, lane)), w.text(w.argument(in, 1, lane)), uint32(w.argument(in, 2, lane)))
}
