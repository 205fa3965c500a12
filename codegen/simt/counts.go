package simt

// Counts is the work of a block of threads, counted statically: each figure
// is what the block's warps execute together.
type Counts struct {
	Pipe [NumPipes]int64 // warp instructions by unit, as machine instructions
	Mma  [NumMmas]int64  // warp-wide matrix instructions by form
	// Wgmma counts, by form, the pieces of 16 rows and 8 columns that warps' shares of
	// wgmma instructions are.
	Wgmma   [NumWgmmas]int64
	Waves   int64 // shared-memory wavefronts
	Loads   int64 // bytes read from global memory
	Stores  int64 // bytes written to global memory
	Sectors int64 // 32-byte sectors of global memory touched
	Bars    int64 // barriers waited at, by warps
	Fills   int64 // of buffers: by copies of tensor maps, and by each warp whose threads copy
	// Unknown counts decisions that no launch value determines: a guard that
	// differs between lanes is taken to hold, a branch takes both sides, a loop
	// runs Env.Rounds times.
	Unknown int64
}

// Issue is the number of warp instructions issued.
func (c *Counts) Issue() int64 {
	var n int64
	for _, p := range c.Pipe {
		n += p
	}
	return n
}

// FLOPs is the tensor-core work: two operations for each multiply-add.
func (c *Counts) FLOPs() int64 {
	var n int64
	for m, count := range c.Mma {
		i := Mma(m).Info()
		n += count * 2 * int64(i.M*i.N*i.K)
	}
	for f, count := range c.Wgmma {
		n += count * WgmmaPieceFLOPs(Wgmma(f))
	}
	return n
}

// WgmmaPieceFLOPs is the operations of a piece of a wgmma instruction: 16 rows by 8
// columns.
func WgmmaPieceFLOPs(f Wgmma) int64 { return 2 * WgmmaM / 4 * WgmmaN * int64(f.Info().K) }

// OperandWaves is how many times a wgmma instruction reads 128 bytes of shared memory
// for a warp: its 16 rows of A, and its quarter of B.
func (in *Instr) OperandWaves() int {
	s := in.Wgmma()
	info := s.Form.Info()
	a, _, _ := in.WgmmaOperands()
	bits := s.N * info.K * info.Bits / 4
	if len(a) == 1 {
		bits += WgmmaM / 4 * info.K * info.Bits
	}
	return (bits + 1023) / 1024
}

// add adds n times what d counts.
func (c *Counts) add(d *Counts, n int64) {
	if n == 0 {
		return
	}
	for i := range c.Pipe {
		c.Pipe[i] += n * d.Pipe[i]
	}
	for i := range c.Mma {
		c.Mma[i] += n * d.Mma[i]
	}
	for i := range c.Wgmma {
		c.Wgmma[i] += n * d.Wgmma[i]
	}
	c.Waves += n * d.Waves
	c.Loads += n * d.Loads
	c.Stores += n * d.Stores
	c.Sectors += n * d.Sectors
	c.Bars += n * d.Bars
	c.Fills += n * d.Fills
	c.Unknown += n * d.Unknown
}

const warpSize = 32

// instr adds what one warp's execution of an instruction is.
func (c *Counts) instr(in *Instr) {
	c.Pipe[in.Pipe()] += machineInstrs(in)
	switch in.Op {
	case OpMma:
		c.Mma[in.Mma]++
	case OpWgmma:
		s := in.Wgmma()
		c.Wgmma[s.Form] += int64(s.N / WgmmaN)
		c.Waves += int64(in.OperandWaves())
	case OpMbarExpect: // the bytes of the copies that follow
		c.Fills++
		c.Loads += in.Imm
		c.Sectors += in.Imm / 32
		c.Waves += in.Imm / 128
	case OpMbarCopied:
		c.Fills++
	case OpTensorStore:
		c.Stores += in.Imm
		c.Sectors += in.Imm / 32
		c.Waves += in.Imm / 128
	case OpBar:
		c.Bars++
	case OpLd, OpSt, OpAtom, OpRed:
		c.access(in)
	case OpLdMatrix, OpStMatrix:
		c.Waves += or(in.Waves, int(in.Vec))
	case OpStAt:
		c.Waves++
	case OpCpAsync:
		n := in.CpAsyncBytes() * warpSize
		c.Loads += int64(n)
		c.Sectors += or(in.Sectors, n/32)
		c.Waves += or(in.Waves, max(1, n/128))
	}
}

func (c *Counts) access(in *Instr) {
	n := int(in.Vec) * in.Mem.Bytes() * warpSize
	if in.Space == Shared {
		c.Waves += or(in.Waves, max(1, n/128))
		return
	}
	c.Sectors += or(in.Sectors, max(1, n/32))
	if in.Op != OpSt && in.Op != OpRed {
		c.Loads += int64(n)
	}
	if in.Op != OpLd {
		c.Stores += int64(n)
	}
}

func or(known int16, estimate int) int64 {
	if known > 0 {
		return int64(known)
	}
	return int64(estimate)
}

// Pipe is the unit that executes the instruction.
func (in *Instr) Pipe() Pipe {
	p := in.Op.Info().Pipe
	switch {
	case in.Type == F64 && (p == PipeALU || p == PipeFMA || p == PipeMUFU):
		return PipeFP64
	case in.Type.IsFloat() && (in.Op == OpAdd || in.Op == OpSub):
		return PipeFMA
	}
	return p
}

// machineInstrs is about how many machine instructions an operation takes.
// Source: what ptxas makes of each on sm_80 and sm_90.
func machineInstrs(in *Instr) int64 {
	wide := in.Type.Bits() == 64 && in.Type.IsInt()
	switch in.Op {
	case OpBitcast:
		return 0
	case OpPack, OpUnpack:
		if in.Type.Bits() == 64 {
			return 0 // a pair of registers either way
		}
	case OpAdd, OpSub, OpAnd, OpOr, OpXor, OpNot, OpShl, OpShr, OpShrU, OpCmp, OpSelect, OpMin, OpMax, OpMinU, OpMaxU, OpNeg:
		if wide {
			return 2
		}
	case OpMul, OpMad:
		if wide {
			return 4
		}
	case OpMulWide, OpMulWideU, OpMadWide, OpMadWideU, OpSext:
		return 1
	case OpZext:
		return 0
	case OpDiv, OpRem, OpDivU, OpRemU:
		if in.Has(Approx) {
			return 3
		}
		return 20
	case OpRcp, OpSqrt:
		if !in.Has(Approx) {
			return 8
		}
	case OpFor, OpLoop, OpReturn, OpIf:
		return 0 // see the plan
	}
	return 1
}
