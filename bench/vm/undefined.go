package vm

import "math/bits"

// undefinedRule says how an instruction's results depend on undefined bits of
// its operands.
type undefinedRule uint8

const (
	ruleAll     undefinedRule = iota // any undefined bit makes the whole result undefined
	ruleCopy                         // bit by bit the source
	ruleBitwise                      // each bit depends on the same bits of the sources
	ruleAnd
	ruleOr
	ruleAndPred
	ruleOrPred
	ruleSum // carries go up
	ruleShift
	ruleField
	ruleInsert
	ruleFunnel
	rulePermute
	ruleSelect
	rulePack
	rulePair
	ruleUnpack
	ruleConvert
	ruleLoad
	ruleStore
)

type undefinedBits struct{}

func (f *frame) bits() *undefinedBits { return f.undef }

func (u *undefinedBits) undefineAtStart(p *program) {}

func undefined(w *warp, in *inst) {
	saved := w.mode
	if w.mask == w.live {
		in.fn[modeFull](w, in)
	} else {
		in.fn[modePartial](w, in)
	}
	w.mode = saved
}

func guardedUndefined(w *warp, in *inst) { guarded(w, in) }

func (w *warp) forget() {}

func (w *warp) checkGuard(in *inst) {}

func (w *warp) checkAddress(in *inst, slot int32, lanes uint32) {}

type sharedUndefined struct{}

type raceState struct{}
type clock struct{}
type warpClock struct{}
type asyncCopies struct{}

func (a *asyncCopies) reset()          {}
func (b *block) buildChecks()          {}
func (b *block) startChecks()          {}
func (b *block) orderBarrier(*barrier) {}
func (b *block) landLate() bool        { return false }
func (w *warp) forceCollective() bool  { return false }
func (b *block) stuck() bool           { return true }

func (r *reduction) deliver(...any) {}

type mmaOp struct{}
type collective struct{}
type callSite struct{}

func (w *warp) results(fr *frame, m uint32) {}
func (bar *barrier) deliver(fr *frame, mask uint32, in *inst) {
	_ = bits.Len(0)
}
func (b *block) deadlock() {}
