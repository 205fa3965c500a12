package simt

import "strconv"

// MbarInit makes the 8 bytes at a shared address an mbarrier whose phases end after so
// many arrivals, and after the bytes expected have come.
func (b *Builder) MbarInit(at *Value, arrivals int) { b.mbarrier(OpMbarInit, at).Imm = int64(arrivals) }

// MbarArrive counts an arrival.
func (b *Builder) MbarArrive(at *Value) { b.mbarrier(OpMbarArrive, at) }

// MbarArriveAt counts an arrival at the mbarrier that lies where this one does in another
// block of the cluster, or in this.
func (b *Builder) MbarArriveAt(at, block *Value) {
	b.check(OpMbarArriveAt, Void, []*Value{at, block})
	in := b.emit(OpMbarArriveAt, Void, at, block)
	in.Guard, in.GuardNot = b.guard, b.not
}

// StAt stores a value where a shared address is in another block of the cluster, or in
// this. That block must have started, and must not end before.
func (b *Builder) StAt(at, block, v *Value) {
	b.check(OpStAt, v.Type, []*Value{at, block, v})
	in := b.emit(OpStAt, v.Type, at, block, v)
	in.Guard, in.GuardNot = b.guard, b.not
}

// MbarCopied counts an arrival when the copies that the thread has asked for by CpAsync have
// landed.
func (b *Builder) MbarCopied(at *Value) {
	at, off := b.split(at, 0)
	b.check(OpMbarCopied, Void, []*Value{at})
	b.emit(OpMbarCopied, Void, at).Offset = off
}

// ClusterSync waits until all threads of the cluster are here.
func (b *Builder) ClusterSync() {
	b.ClusterArrive()
	b.ClusterWait()
}

// ClusterArrive says that the thread is here, as each must before it waits for the
// cluster's others by ClusterWait.
func (b *Builder) ClusterArrive() { b.emit(OpClusterArrive, Void) }

// ClusterWait waits until all threads of the cluster have arrived.
func (b *Builder) ClusterWait() { b.emit(OpClusterWait, Void) }

// MbarExpect counts an arrival, and bytes that the phase waits for.
func (b *Builder) MbarExpect(at *Value, bytes int) { b.mbarrier(OpMbarExpect, at).Imm = int64(bytes) }

// MbarWait waits until the phase of the given parity, an I32 of 0 or 1, is over. The
// phase before an mbarrier's first counts as over and has parity 1.
func (b *Builder) MbarWait(at, parity *Value) {
	at, off := b.split(at, 0)
	b.check(OpMbarWait, Void, []*Value{at, parity})
	b.emit(OpMbarWait, Void, at, parity).Offset = off
}

func (b *Builder) mbarrier(op Op, at *Value) *Instr { return b.access(op, Void, Shared, at, Access{}) }

// TensorLoad starts a copy of a tensor map's box from the given coordinates, innermost
// first, to shared memory. Elements outside the tensor are zeros. The bytes count at
// an mbarrier when they have come. blocks, unless 0, are those of the cluster, a bit each,
// that get the copy, at the same places. policy, unless nil, is one for L2.
func (b *Builder) TensorLoad(to, tensor, mbar *Value, at []*Value, blocks int, policy *Value) {
	to, off := b.split(to, 0)
	args := append([]*Value{to, tensor, mbar}, at...)
	if policy != nil {
		args = append(args, policy)
	}
	b.check(OpTensorLoad, Void, args)
	in := b.emit(OpTensorLoad, Void, args...)
	in.Space, in.Offset, in.Imm = Shared, off, int64(blocks)
	if policy != nil {
		in.Flags = Hinted
	}
	in.Guard, in.GuardNot = b.guard, b.not
}

// Box is the coordinates of a tensor map's box that an OpTensorLoad or OpTensorStore copies,
// and its policy for L2 or nil.
func (in *Instr) Box() (at []*Value, policy *Value) {
	if at = in.Args[2:]; in.Op == OpTensorLoad {
		at = at[1:]
	}
	if n := len(at) - 1; in.Has(Hinted) {
		return at[:n], at[n]
	}
	return at, nil
}

// L2Policy is what L2 does with lines when it needs room.
type L2Policy uint8

// The policies.
const (
	EvictFirst L2Policy = iota
	EvictLast
)

func (p L2Policy) String() string { return [...]string{"evict_first", "evict_last"}[p] }

// Policy is a policy for all lines of an access.
func (b *Builder) Policy(p L2Policy) *Value {
	return b.pure(OpPolicy, I64, I64, attrs{imm: int64(p)})
}

// TensorStore starts a copy of so many bytes of shared memory to a tensor map's box at the
// given coordinates, innermost first, none of them negative. Elements outside the tensor
// are dropped. It belongs to the thread's open group. policy, unless nil, is one for L2.
func (b *Builder) TensorStore(from, tensor *Value, at []*Value, bytes int, policy *Value) {
	b.tensorStore(from, tensor, at, bytes, policy, 0)
}

// TensorAdd is TensorStore of elements that are added to those that are there, floats of 16
// or 32 bits, each atomically, rounded to nearest.
func (b *Builder) TensorAdd(from, tensor *Value, at []*Value, bytes int, policy *Value) {
	b.tensorStore(from, tensor, at, bytes, policy, Adds)
}

func (b *Builder) tensorStore(from, tensor *Value, at []*Value, bytes int, policy *Value, f Flags) {
	from, off := b.split(from, 0)
	args := append([]*Value{from, tensor}, at...)
	if policy != nil {
		args, f = append(args, policy), f|Hinted
	}
	b.check(OpTensorStore, Void, args)
	in := b.emit(OpTensorStore, Void, args...)
	in.Space, in.Offset, in.Imm, in.Flags = Shared, off, int64(bytes), f
	in.Guard, in.GuardNot = b.guard, b.not
}

// BulkCommit closes a group of the thread's tensor stores.
func (b *Builder) BulkCommit() { b.emit(OpBulkCommit, Void) }

// BulkWait waits until at most pending of the thread's groups still read shared memory.
func (b *Builder) BulkWait(pending int) { b.emit(OpBulkWait, Void).Imm = int64(pending) }

// GridLaunch lets the next launch of the stream start, if it was asked to be early, once all
// blocks have come here or are over.
func (b *Builder) GridLaunch() { b.emit(OpGridLaunch, Void) }

// GridWait waits until the launches before are over and what they wrote is there.
func (b *Builder) GridWait() { b.emit(OpGridWait, Void) }

// ProxyFence makes the thread's ordinary writes to shared memory visible to asynchronous
// copies and wgmma.
func (b *Builder) ProxyFence() { b.emit(OpProxyFence, Void) }

// MaxRegisters changes how many registers each of the warpgroup's threads has: up if it
// needs more than at its start, else down.
func (b *Builder) MaxRegisters(n int, up bool) {
	in := b.emit(OpMaxRegisters, Void)
	in.Imm = int64(n)
	if !up {
		in.Flags = Fewer
	}
}

func (in *Instr) tensorOpcode() string {
	at, _ := in.Box()
	op := "cp.async.bulk.tensor." + strconv.Itoa(len(at)) + "d"
	switch {
	case in.Has(Adds):
		op = "cp.reduce.async.bulk.tensor." + strconv.Itoa(len(at)) + "d.global.shared::cta.add.tile.bulk_group"
	case in.Op == OpTensorStore:
		op += ".global.shared::cta.tile.bulk_group"
	default:
		op += ".shared::cluster.global.tile.mbarrier::complete_tx::bytes"
		if in.Imm != 0 {
			op += ".multicast::cluster"
		}
	}
	return op + in.when(Hinted, ".L2::cache_hint")
}

func (in *Instr) wgmmaOpcode() string {
	s := in.Wgmma()
	info := s.Form.Info()
	return "wgmma.mma_async.sync.aligned.m64n" + strconv.Itoa(s.N) + "k" + strconv.Itoa(info.K) + "." + info.Types
}
