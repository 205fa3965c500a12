package vm

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
	ruleMatrix
	ruleLoadMatrix
	ruleStoreMatrix
	ruleAsyncCopy
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

func (b *block) buildChecks()          {}
func (b *block) startChecks()          {}
func (b *block) orderBarrier(*barrier) {}
func (b *block) landLate() bool        { return false }
func (b *block) stuck() bool           { return true }

type callSite struct{}

func (w *warp) results(fr *frame, m uint32) {}

func (b *block) arriveClock(bar *barrier, w *warp, in *inst, lanes uint32) {}
func (w *warp) orderLanes(lanes uint32)                                    {}
func (w *warp) collectiveDefined(in *inst, g *gathered, lanes uint32)      {}
func (w *warp) checkOperand(in *inst, k class, slot int32, lanes uint32)   {}

type asyncMark struct{}

func (w *warp) markInFlight(c *inFlight)                                     {}
func (w *warp) markLanded(c *inFlight, lanes uint32)                         {}
func (b *block) readGlobal(dst []byte, a *allocation, off int64)             { copy(dst, a.data[off:]) }
func (w *warp) checkOperands(in *inst, lanes uint32)                         {}
func (b *block) atomicShared(w *warp, in *inst, lane int, off uint64, n int) {}
func (b *block) atomicGlobal(w *warp, in *inst, lane int, a *allocation, off int64, n int) []byte {
	return a.data[off:]
}
func (w *warp) orderFence(in *inst, lanes uint32) {}
func (d *decoder) bulk()                          { d.refuse("the virtual machine does not execute it yet") }
func (d *decoder) asyncArrive()                   { d.refuse("the virtual machine does not execute it yet") }
