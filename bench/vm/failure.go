package vm

import (
	"fmt"
	"runtime/debug"

	"github.com/kgen-dev/kgen/bench"
)

// fail ends the launch at a control instruction for what a lane did, which is
// the kernel's failure. Earlier blocks come first: so it needs the turn.
func (w *warp) fail(in *inst, lane int, format string, args ...any) {
	b := w.b
	if !b.mayShare() {
		w.retry(stopTurn)
		return
	}
	err := &bench.KernelError{
		File: b.l.mod.src.File, Kernel: b.l.prog.name, Site: b.site(w.index, lane, w.source(in)),
		Message: fmt.Sprintf(format, args...),
	}
	b.l.stopWith(err)
	w.stop = stopFatal
}

// stopWith ends the launch with an error, unless it has one already.
func (l *launch) stopWith(err error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
}

// broken ends the launch for a bug of the virtual machine itself, which a
// block has come upon.
func (l *launch) broken(b *block, cause any) {
	err := internalError(l.where(b), cause)
	l.stopWith(err)
	l.abort.Store(true)
	l.mu.Lock()
	l.changed.Broadcast()
	l.mu.Unlock()
}

func internalError(where string, cause any) *bench.InternalError {
	err, ok := cause.(error)
	if !ok {
		err = fmt.Errorf("%v", cause)
	}
	return &bench.InternalError{Where: where, Cause: err, Stack: debug.Stack()}
}

// where says what a block was at, for as much as it knows: its state may be
// broken as well.
func (l *launch) where(b *block) (text string) {
	text = fmt.Sprintf("kernel %s of %s", l.prog.name, l.mod.src.File)
	defer func() { _ = recover() }()
	if b == nil {
		return text
	}
	w := b.warps[b.sequence[b.at]]
	text += fmt.Sprintf(", block %v", w.cta.id)
	if src := sourceFrom(w.fr.prog, w.pc); src != nil {
		text += fmt.Sprintf(", line %d", src.Pos.Line)
	}
	return text
}
