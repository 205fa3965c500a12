package vm

type callSite struct{}

func (w *warp) results(fr *frame, m uint32)                       {}
func (b *block) landLate() bool                                   { return false }
func (b *block) stuck() bool                                      { return true }
func (r *raceState) proxyFence(w *warp, f *fenceOp, lanes uint32) {}
