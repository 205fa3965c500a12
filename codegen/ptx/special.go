package ptx

import (
	"fmt"
	"strings"
)

// Special is a special register, vector ones one component each.
type Special int32

const (
	NoSpecial Special = iota
	TidX
	TidY
	TidZ
	TidW
	NtidX
	NtidY
	NtidZ
	NtidW
	CtaidX
	CtaidY
	CtaidZ
	CtaidW
	NctaidX
	NctaidY
	NctaidZ
	NctaidW
	ClusteridX
	ClusteridY
	ClusteridZ
	ClusteridW
	NclusteridX
	NclusteridY
	NclusteridZ
	NclusteridW
	ClusterCtaidX
	ClusterCtaidY
	ClusterCtaidZ
	ClusterCtaidW
	ClusterNctaidX
	ClusterNctaidY
	ClusterNctaidZ
	ClusterNctaidW
	ClusterCtarank
	ClusterNctarank
	IsExplicitCluster
	Laneid
	Warpid
	Nwarpid
	Smid
	Nsmid
	Gridid
	LanemaskEq
	LanemaskLe
	LanemaskLt
	LanemaskGe
	LanemaskGt
	Clock
	ClockHi
	Clock64
	Globaltimer
	GlobaltimerLo
	GlobaltimerHi
	TotalSmemSize
	AggrSmemSize
	DynamicSmemSize
	ReservedSmemOffsetBegin
	ReservedSmemOffsetEnd
	ReservedSmemOffsetCap
	ReservedSmemOffset0
	ReservedSmemOffset1
	CurrentGraphExec
	Pm0   // %pm0 to %pm7
	Pm0At = Pm0 + 8
	// Envreg0 is the first of %envreg0 to %envreg31, after %pm0_64 to %pm7_64.
	Envreg0    = Pm0At + 8
	numSpecial = Envreg0 + 32
)

// special is a line of the table of special registers.
type special struct {
	name    string // without %
	first   Special
	vector  bool // four components
	count   int  // numbered: name0 to name<count-1>
	suffix  string
	typ     Type
	version Version
	sm      int
}

var specials = []special{
	{name: "tid", first: TidX, vector: true, typ: U32},
	{name: "ntid", first: NtidX, vector: true, typ: U32},
	{name: "ctaid", first: CtaidX, vector: true, typ: U32},
	{name: "nctaid", first: NctaidX, vector: true, typ: U32},
	{name: "clusterid", first: ClusteridX, vector: true, typ: U32, version: Version{7, 8}, sm: 90},
	{name: "nclusterid", first: NclusteridX, vector: true, typ: U32, version: Version{7, 8}, sm: 90},
	{name: "cluster_ctaid", first: ClusterCtaidX, vector: true, typ: U32, version: Version{7, 8}, sm: 90},
	{name: "cluster_nctaid", first: ClusterNctaidX, vector: true, typ: U32, version: Version{7, 8}, sm: 90},
	{name: "cluster_ctarank", first: ClusterCtarank, typ: U32, version: Version{7, 8}, sm: 90},
	{name: "cluster_nctarank", first: ClusterNctarank, typ: U32, version: Version{7, 8}, sm: 90},
	{name: "is_explicit_cluster", first: IsExplicitCluster, typ: Pred, version: Version{7, 8}, sm: 90},
	{name: "laneid", first: Laneid, typ: U32, version: Version{1, 3}},
	{name: "warpid", first: Warpid, typ: U32, version: Version{1, 3}},
	{name: "nwarpid", first: Nwarpid, typ: U32, version: Version{2, 0}, sm: 20},
	{name: "smid", first: Smid, typ: U32, version: Version{1, 3}},
	{name: "nsmid", first: Nsmid, typ: U32, version: Version{2, 0}, sm: 20},
	{name: "gridid", first: Gridid, typ: U64},
	{name: "lanemask_eq", first: LanemaskEq, typ: U32, version: Version{2, 0}, sm: 20},
	{name: "lanemask_le", first: LanemaskLe, typ: U32, version: Version{2, 0}, sm: 20},
	{name: "lanemask_lt", first: LanemaskLt, typ: U32, version: Version{2, 0}, sm: 20},
	{name: "lanemask_ge", first: LanemaskGe, typ: U32, version: Version{2, 0}, sm: 20},
	{name: "lanemask_gt", first: LanemaskGt, typ: U32, version: Version{2, 0}, sm: 20},
	{name: "clock", first: Clock, typ: U32},
	{name: "clock_hi", first: ClockHi, typ: U32, version: Version{5, 0}, sm: 20},
	{name: "clock64", first: Clock64, typ: U64, version: Version{2, 0}, sm: 20},
	{name: "globaltimer", first: Globaltimer, typ: U64, version: Version{3, 1}, sm: 30},
	{name: "globaltimer_lo", first: GlobaltimerLo, typ: U32, version: Version{3, 1}, sm: 30},
	{name: "globaltimer_hi", first: GlobaltimerHi, typ: U32, version: Version{3, 1}, sm: 30},
	{name: "total_smem_size", first: TotalSmemSize, typ: U32, version: Version{4, 1}, sm: 20},
	{name: "aggr_smem_size", first: AggrSmemSize, typ: U32, version: Version{8, 1}, sm: 90},
	{name: "dynamic_smem_size", first: DynamicSmemSize, typ: U32, version: Version{4, 1}, sm: 20},
	{name: "reserved_smem_offset_begin", first: ReservedSmemOffsetBegin, typ: B32, version: Version{7, 6}, sm: 80},
	{name: "reserved_smem_offset_end", first: ReservedSmemOffsetEnd, typ: B32, version: Version{7, 6}, sm: 80},
	{name: "reserved_smem_offset_cap", first: ReservedSmemOffsetCap, typ: B32, version: Version{7, 6}, sm: 80},
	{name: "reserved_smem_offset_", first: ReservedSmemOffset0, count: 2, typ: B32, version: Version{7, 6}, sm: 80},
	{name: "current_graph_exec", first: CurrentGraphExec, typ: U64, version: Version{8, 0}, sm: 50},
	{name: "pm", first: Pm0, count: 8, typ: U32, version: Version{1, 3}},
	{name: "pm", first: Pm0At, count: 8, suffix: "_64", typ: U64, version: Version{4, 0}, sm: 50},
	{name: "envreg", first: Envreg0, count: 32, typ: B32, version: Version{2, 1}},
}

// specialEntry is one special register by name and member.
type specialEntry struct {
	which   Special
	special *special
	symbol  *Symbol // what an operand of it has
}

var specialByName, specialNames = func() (map[string]specialEntry, [numSpecial]string) {
	m := map[string]specialEntry{}
	var names [numSpecial]string
	add := func(name string, which Special, s *special) {
		bare, _, _ := strings.Cut(name, ".")
		m[name] = specialEntry{which, s, &Symbol{Name: bare, Slot: int32(which)}}
		names[which] = name
	}
	for i := range specials {
		s := &specials[i]
		switch {
		case s.vector:
			for c, member := range []string{"x", "y", "z", "w"} {
				add("%"+s.name+"."+member, s.first+Special(c), s)
			}
		case s.count > 0:
			for c := range s.count {
				add(fmt.Sprintf("%%%s%d%s", s.name, c, s.suffix), s.first+Special(c), s)
			}
		default:
			add("%"+s.name, s.first, s)
		}
	}
	return m, names
}()

// String is the register's name, "%tid.x".
func (s Special) String() string {
	if s <= NoSpecial || s >= numSpecial {
		return "no special register"
	}
	return specialNames[s]
}

// Type is the register's type.
func (s Special) Type() Type {
	if e, ok := specialByName[s.String()]; ok {
		return e.special.typ
	}
	return NoType
}

// lookupSpecial finds a special register. A member may stand with it.
func lookupSpecial(name string, m Member) (specialEntry, bool) {
	if !strings.HasPrefix(name, "%") {
		return specialEntry{}, false
	}
	if m != 0 {
		name += "." + m.String()
	}
	e, ok := specialByName[name]
	return e, ok
}
