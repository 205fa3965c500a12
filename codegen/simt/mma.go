package simt

// Mma is a form of the warp-wide matrix instruction mma.sync: a row of the
// table below. Operands are A's registers, then B's, then C's; results are
// D's. A is row-major and B column-major, as the instruction wants them.
type Mma uint8

// The forms.
const (
	MmaM16N8K16F16 Mma = iota
	MmaM16N8K16BF16
	MmaM16N8K8F16
	MmaM16N8K8BF16
	MmaM16N8K16F16AccF16
	MmaM16N8K8F16AccF16
	MmaM16N8K8TF32
	MmaM16N8K4TF32
	MmaM16N8K32S8
	MmaM16N8K16S8
	MmaM16N8K32U8
	MmaM16N8K32E4M3
	MmaM16N8K32E5M2
	MmaM8N8K4F64
	numMmas

	// NumMmas is how many forms there are.
	NumMmas = int(numMmas)
)

// MmaInfo describes a form of mma.sync. Source: PTX ISA 9.1, section 9.7.14.5.
type MmaInfo struct {
	M, N, K    int
	PTX        string // the whole opcode
	A, B, C    int    // registers a thread of A, B and C (and D)
	AB, Acc    Type   // register types
	MinSM      int
	MinVersion int // PTX version times ten
}

var mmas = [numMmas]MmaInfo{
	MmaM16N8K16F16:       {16, 8, 16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, I32, F32, 80, 70},
	MmaM16N8K16BF16:      {16, 8, 16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, I32, F32, 80, 70},
	MmaM16N8K8F16:        {16, 8, 8, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4, I32, F32, 75, 65},
	MmaM16N8K8BF16:       {16, 8, 8, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, I32, F32, 80, 70},
	MmaM16N8K16F16AccF16: {16, 8, 16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, I32, F16x2, 80, 70},
	MmaM16N8K8F16AccF16:  {16, 8, 8, "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", 2, 1, 2, I32, F16x2, 75, 65},
	MmaM16N8K8TF32:       {16, 8, 8, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, I32, F32, 80, 70},
	MmaM16N8K4TF32:       {16, 8, 4, "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, I32, F32, 80, 70},
	MmaM16N8K32S8:        {16, 8, 32, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 4, 2, 4, I32, I32, 80, 70},
	MmaM16N8K16S8:        {16, 8, 16, "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", 2, 1, 4, I32, I32, 80, 70},
	MmaM16N8K32U8:        {16, 8, 32, "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32", 4, 2, 4, I32, I32, 80, 70},
	MmaM16N8K32E4M3:      {16, 8, 32, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 2, 4, I32, F32, 89, 84},
	MmaM16N8K32E5M2:      {16, 8, 32, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", 4, 2, 4, I32, F32, 89, 84},
	MmaM8N8K4F64:         {8, 8, 4, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 1, 1, 2, F64, F64, 80, 70},
}

// Info returns the form's description.
func (m Mma) Info() *MmaInfo { return &mmas[m] }

func (m Mma) String() string { return mmas[m].PTX }
