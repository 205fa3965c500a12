package ptx

// Pipe is the unit of a multiprocessor that an instruction keeps busy.
type Pipe uint8

const (
	PipeNone    Pipe = iota // costs nothing of its own: labels, pragmas, nop
	PipeALU                 // integer, logic, compare, select, moves
	PipeFMA                 // f32 and packed f16 arithmetic, integer multiply
	PipeFP64                // f64 arithmetic
	PipeMUFU                // ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh; popc, clz, bfind, brev, at the same rate
	PipeConvert             // conversions that run at a quarter rate
	PipeTensor              // mma, wgmma, tcgen05
	PipeLSU                 // loads, stores, atomics, shuffles, ldmatrix
	PipeAsync               // cp.async.bulk and other copies of the copy engine
	PipeTexture             // tex, surf
	PipeUniform             // address arithmetic that all lanes share
	PipeControl             // branches, barriers, fences, votes
	NumPipes    = int(iota)
)

var pipeNames = [NumPipes]string{"none", "alu", "fma", "fp64", "mufu", "convert", "tensor", "lsu", "async", "texture", "uniform", "control"}

func (p Pipe) String() string { return pipeNames[p] }
