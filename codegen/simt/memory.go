package simt

import (
	"fmt"
	"math"
)

// Access are the attributes of a memory access.
type Access struct {
	Offset  int   // bytes added to the address
	Cache   Cache // hints
	Waves   int   // shared-memory wavefronts it takes, 0 when unknown
	Sectors int   // 32-byte sectors a warp touches, 0 when unknown
	Flags   Flags // Volatile, Trans
	// Default, for a guarded load, is what each result is where the guard does
	// not hold; nil means zeros.
	Default []*Value
}

// split moves the constant part of an address into the offset.
func (b *Builder) split(addr *Value, off int) (*Value, int32) {
	for addr.Block == nil && addr.Def != nil && addr.Def.Op == OpAdd && addr.Def.Args[1].IsConst() {
		sum := int64(off) + addr.Def.Args[1].Int()
		if sum > math.MaxInt32 || sum < math.MinInt32 {
			break
		}
		addr, off = addr.Def.Args[0], int(sum)
	}
	if int(int32(off)) != off {
		panic(fmt.Sprintf("simt: address offset %d does not fit 32 bits", off))
	}
	return addr, int32(off)
}

// access emits a memory instruction: its address and its other operands.
func (b *Builder) access(op Op, t Type, space Space, addr *Value, a Access, rest ...*Value) *Instr {
	want := Ptr
	if space == Shared {
		want = I32
	}
	if addr.Type != want {
		panic(fmt.Sprintf("simt: %s: %s address is %s, want %s", op, space, addr.Type, want))
	}
	base, off := b.split(addr, a.Offset)
	in := b.emit(op, t)
	in.Args = b.K.list(1 + len(rest))
	in.Args[0] = base
	copy(in.Args[1:], rest)
	in.Space, in.Offset, in.Cache, in.Flags = space, off, a.Cache, a.Flags
	in.Waves, in.Sectors = int16(a.Waves), int16(a.Sectors)
	in.Guard, in.GuardNot = b.guard, b.not
	return in
}

// Ld loads n (1, 2 or 4) consecutive registers of type t. Under Guarded, a
// lane that does not load gets a.Default or zeros.
func (b *Builder) Ld(space Space, t Type, n int, addr *Value, a Access) []*Value {
	return b.LdMem(space, t, MemOf(t), n, addr, a)
}

// LdMem is Ld with memory elements of another width: U8 or S8 into I32 or I16.
func (b *Builder) LdMem(space Space, t Type, mem Mem, n int, addr *Value, a Access) []*Value {
	var rest []*Value
	if b.guard != nil {
		rest = a.Default
	}
	in := b.access(OpLd, t, space, addr, a, rest...)
	in.Mem, in.Vec = mem, uint8(n)
	return b.results(in, t, n)
}

// LdGlobal loads n registers from global memory.
func (b *Builder) LdGlobal(t Type, n int, addr *Value, a Access) []*Value {
	return b.Ld(Global, t, n, addr, a)
}

// LdShared loads n registers from shared memory.
func (b *Builder) LdShared(t Type, n int, addr *Value, a Access) []*Value {
	return b.Ld(Shared, t, n, addr, a)
}

// St stores 1, 2 or 4 consecutive registers.
func (b *Builder) St(space Space, addr *Value, vs []*Value, a Access) {
	b.StMem(space, MemOf(vs[0].Type), addr, vs, a)
}

// StMem is St with memory elements of another width: the low 8 bits as U8.
func (b *Builder) StMem(space Space, mem Mem, addr *Value, vs []*Value, a Access) {
	in := b.access(OpSt, vs[0].Type, space, addr, a, vs...)
	in.Mem, in.Vec = mem, uint8(len(vs))
}

// StGlobal stores to global memory.
func (b *Builder) StGlobal(addr *Value, vs []*Value, a Access) { b.St(Global, addr, vs, a) }

// StShared stores to shared memory.
func (b *Builder) StShared(addr *Value, vs []*Value, a Access) { b.St(Shared, addr, vs, a) }

// Atom performs an atomic access and returns the old value. AtomCAS takes
// (compare, new), all others one operand.
func (b *Builder) Atom(op AtomOp, space Space, scope Scope, addr *Value, vs []*Value, a Access) *Value {
	in := b.access(OpAtom, vs[0].Type, space, addr, a, vs...)
	in.Atom, in.Scope, in.Vec, in.Mem = op, scope, 1, MemOf(in.Type)
	return b.result(in, in.Type)
}

// Red is Atom without the old value.
func (b *Builder) Red(op AtomOp, space Space, scope Scope, addr *Value, v *Value, a Access) {
	in := b.access(OpRed, v.Type, space, addr, a, v)
	in.Atom, in.Scope, in.Vec, in.Mem = op, scope, 1, MemOf(in.Type)
}

// CpAsync starts a copy of bytes (4, 8 or 16) from global to shared memory.
// size, if not nil, is an I32 with how many bytes really are read; the rest is
// zeros. offset is added to the shared address, a.Offset to the global one.
func (b *Builder) CpAsync(shared, global *Value, bytes, offset int, size *Value, a Access) {
	sh, so := b.split(shared, offset)
	gl, goff := b.split(global, a.Offset)
	args := []*Value{sh, gl}
	if size != nil {
		args = append(args, size)
	}
	b.check(OpCpAsync, I32, args)
	in := b.emit(OpCpAsync, I32, args...)
	in.Imm = int64(bytes) | int64(goff)<<8
	in.Offset, in.Cache, in.Waves, in.Sectors = so, a.Cache, int16(a.Waves), int16(a.Sectors)
	in.Guard, in.GuardNot = b.guard, b.not
}

// CpAsyncBytes is how many bytes a CpAsync copies.
func (in *Instr) CpAsyncBytes() int { return int(in.Imm & 0xff) }

// CpAsyncGlobalOffset is the offset added to a CpAsync's global address.
func (in *Instr) CpAsyncGlobalOffset() int { return int(in.Imm >> 8) }

// CpAsyncCommit closes the group of copies started so far.
func (b *Builder) CpAsyncCommit() { b.emit(OpCpAsyncCommit, Void) }

// CpAsyncWait waits until at most n groups are in flight.
func (b *Builder) CpAsyncWait(n int) { b.emit(OpCpAsyncWait, Void).Imm = int64(n) }

// LdMatrix loads n (1, 2 or 4) 8x8 matrices of 16-bit elements from shared
// memory, as registers of type t.
func (b *Builder) LdMatrix(t Type, n int, trans bool, addr *Value, a Access) []*Value {
	if trans {
		a.Flags |= Trans
	}
	in := b.access(OpLdMatrix, t, Shared, addr, a)
	in.Guard = nil
	in.Vec = uint8(n)
	return b.results(in, t, n)
}

// StMatrix stores n (1, 2 or 4) 8x8 matrices to shared memory (sm_90).
func (b *Builder) StMatrix(trans bool, addr *Value, vs []*Value, a Access) {
	if trans {
		a.Flags |= Trans
	}
	in := b.access(OpStMatrix, vs[0].Type, Shared, addr, a, vs...)
	in.Guard = nil
	in.Vec = uint8(len(vs))
}

// Prefetch brings a line into L2.
func (b *Builder) Prefetch(addr *Value, a Access) { b.access(OpPrefetch, Ptr, Global, addr, a) }

// Mma multiplies fragments: D = A*B + C. Its operands have as many registers
// as the form's table says; those of A and B may be of any 32-bit type.
func (b *Builder) Mma(m Mma, x, y, c []*Value) []*Value {
	info := m.Info()
	if len(x) != info.A || len(y) != info.B || len(c) != info.C {
		panic(fmt.Sprintf("simt: %s with %d, %d, %d registers: want %d, %d, %d", m, len(x), len(y), len(c), info.A, info.B, info.C))
	}
	in := b.emit(OpMma, info.Acc)
	in.Mma = m
	in.Args = b.K.list(len(x) + len(y) + len(c))
	n := copy(in.Args, x)
	n += copy(in.Args[n:], y)
	copy(in.Args[n:], c)
	d := b.results(in, info.Acc, info.C)
	for i, v := range d {
		v.Name, v.Sub = c[i].Name, c[i].Sub
	}
	return d
}

// Shfl exchanges a 32-bit register between lanes: mode Idx reads lane n, Bfly
// lane^n, Up lane-n, Down lane+n, within segments of width lanes (32, 16, 8...).
func (b *Builder) Shfl(mode ShflMode, x, n *Value, width int) *Value {
	b.check(OpShfl, x.Type, []*Value{x, n})
	in := b.emit(OpShfl, x.Type, x, n)
	in.Shfl = mode
	in.Imm = int64((32-width)<<8 | 0x1f)
	if mode == Up {
		in.Imm = int64((32 - width) << 8)
	}
	return b.result(in, x.Type)
}

// Vote is true in all lanes if p holds in all (AtomAnd) or any (AtomOr).
func (b *Builder) Vote(op AtomOp, p *Value) *Value {
	b.check(OpVote, Pred, []*Value{p})
	in := b.emit(OpVote, Pred, p)
	in.Atom = op
	return b.result(in, Pred)
}

// Ballot is the mask of lanes where p holds.
func (b *Builder) Ballot(p *Value) *Value {
	b.check(OpBallot, I32, []*Value{p})
	return b.result(b.emit(OpBallot, I32, p), I32)
}

// Redux reduces an I32 over the warp (sm_80).
func (b *Builder) Redux(op AtomOp, x *Value) *Value {
	b.check(OpRedux, I32, []*Value{x})
	in := b.emit(OpRedux, I32, x)
	in.Atom = op
	return b.result(in, I32)
}

// Elect is true in one lane of the warp (sm_90).
func (b *Builder) Elect() *Value { return b.result(b.emit(OpElect, Pred), Pred) }

// Bar waits at barrier id for threads threads, or all of the block for 0.
func (b *Builder) Bar(id *Value, threads int) { b.emit(OpBar, Void, id).Imm = int64(threads) }

// BarArrive counts the thread at barrier id without waiting.
func (b *Builder) BarArrive(id *Value, threads int) {
	b.emit(OpBarArrive, Void, id).Imm = int64(threads)
}

// WarpSync makes the warp's memory accesses so far visible within the warp.
func (b *Builder) WarpSync() { b.emit(OpWarpSync, Void) }

// Fence orders the thread's memory accesses for all threads in scope.
func (b *Builder) Fence(s Scope) { b.emit(OpFence, Void).Scope = s }
