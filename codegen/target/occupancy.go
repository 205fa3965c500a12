package target

import "fmt"

// Usage is what one block of a kernel takes.
type Usage struct {
	Registers int // per thread
	Shared    int // bytes per block, static and dynamic together, without the reserved ones
	Threads   int // per block
	Barriers  int // named barriers; 0 counts as none
}

// Limiter names what bounds the number of resident blocks.
type Limiter string

// What bounds residency.
const (
	ByWarps     Limiter = "warps"
	ByBlocks    Limiter = "blocks"
	ByRegisters Limiter = "registers"
	ByShared    Limiter = "shared memory"
	ByBarriers  Limiter = "barriers"
)

// Occupancy is how many blocks of a kernel an SM holds at once.
type Occupancy struct {
	CTAs    int     // blocks per SM; 0: the kernel cannot be launched
	Warps   int     // of all those blocks
	Limiter Limiter // the tightest limit; of equal ones the first of registers, shared memory, warps, blocks, barriers
}

// Fraction returns resident warps over the SM's maximum.
func (g *GPU) Fraction(o Occupancy) float64 { return float64(o.Warps) / float64(g.MaxWarpsPerSM) }

// Occupancy computes how many blocks fit an SM at once, by NVIDIA's rules: a
// warp's registers are rounded up to the allocation unit and live in one
// sub-partition; a block's shared memory grows by the reserved bytes and is
// rounded up. Source: cuda_occupancy.h of CUDA 13.5. The error says which
// number is not that of a kernel; a kernel that is merely too big has 0 CTAs.
func (g *GPU) Occupancy(u Usage) (Occupancy, error) {
	if u.Threads < 1 || u.Registers < 0 || u.Shared < 0 || u.Barriers < 0 {
		return Occupancy{}, fmt.Errorf("occupancy of %d threads, %d registers, %d shared bytes, %d barriers: want at least 1 thread and nothing negative",
			u.Threads, u.Registers, u.Shared, u.Barriers)
	}
	warps := (u.Threads-1)/WarpSize + 1
	limits := []struct {
		by   Limiter
		ctas int
	}{
		{ByRegisters, g.byRegisters(u, warps)},
		{ByShared, g.byShared(u)},
		{ByWarps, g.byWarps(u, warps)},
		{ByBlocks, g.MaxBlocksPerSM},
		{ByBarriers, g.byBarriers(u)},
	}
	best := Occupancy{CTAs: limits[0].ctas, Limiter: limits[0].by}
	for _, l := range limits[1:] {
		if l.ctas < best.CTAs {
			best = Occupancy{CTAs: l.ctas, Limiter: l.by}
		}
	}
	best.Warps = best.CTAs * warps
	return best, nil
}

func (g *GPU) byRegisters(u Usage, warps int) int {
	a := g.arch
	if u.Registers > a.RegistersPerThread || u.Threads > a.ThreadsPerBlock {
		return 0
	}
	perWarp := roundUp(u.Registers*WarpSize, a.RegisterUnit)
	if perWarp == 0 {
		return g.MaxBlocksPerSM
	}
	// The launch check counts the block's warps as if spread evenly over the
	// sub-partitions.
	if perWarp*roundUp(warps, a.Partitions) > g.RegistersPerSM {
		return 0
	}
	perPartition := g.RegistersPerSM / a.Partitions / perWarp
	return perPartition * a.Partitions / warps
}

func (g *GPU) byShared(u Usage) int {
	if u.Shared > g.SharedPerBlockKiB<<10 {
		return 0
	}
	block := roundUp(u.Shared+g.arch.SharedReserved, g.arch.SharedUnit)
	if block == 0 {
		return g.MaxBlocksPerSM
	}
	return (g.SharedPerSMKiB << 10) / block
}

func (g *GPU) byWarps(u Usage, warps int) int {
	if u.Threads > g.arch.ThreadsPerBlock {
		return 0
	}
	return g.MaxWarpsPerSM / warps
}

// byBarriers: before 9.0 named barriers never bound residency in NVIDIA's
// calculation.
func (g *GPU) byBarriers(u Usage) int {
	if u.Barriers > g.arch.BarriersPerBlock {
		return 0
	}
	if u.Barriers == 0 || !g.CC.AtLeast(9, 0) {
		return g.MaxBlocksPerSM
	}
	return g.MaxBlocksPerSM * g.arch.BarriersPerBlockSlot / u.Barriers
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// gpcs is how many parts an H100 has, which no cluster leaves (NVIDIA H100 Tensor Core GPU
// Architecture: 8 GPCs, of pairs of SMs; an SXM5 has 66 pairs).
const gpcs = 8

// ClusterSMs returns how many SMs clusters of so many blocks can take where each SM holds
// so many blocks: pairs of SMs are taken to be spread over the parts of the GPU as evenly
// as they can. It is at least one.
func (g *GPU) ClusterSMs(resident, cluster int) int {
	if cluster <= 1 {
		return g.SMs
	}
	pairs, total := g.SMs/2, 0
	for part := range gpcs {
		n := 2 * (pairs / gpcs)
		if part < pairs%gpcs {
			n += 2
		}
		total += n * resident / cluster * cluster
	}
	return max(total/resident, 1)
}
