package ptx

// modLists are the lists that several rows share. A list of several lines
// makes a form of each.
var modLists = map[string]string{
	"cmps":     "eq|ne|lt|le|gt|ge",
	"cmpu":     "eq|ne|lt|le|gt|ge|lo|ls|hi|hs",
	"cmpfloat": "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan",

	"scope":  "cta|cluster@7.8/90|gpu|sys",
	"shared": "shared|shared::cta@7.8/30",
	"from":   "const|global|local|param|param::entry@8.3|param::func@8.3|shared|shared::cta@7.8/30|shared::cluster@7.8/90?",
	"to":     "global|local|param|param::func@8.3|shared|shared::cta@7.8/30|shared::cluster@7.8/90?",
	"strong": "global|shared|shared::cta@7.8/30|shared::cluster@7.8/90?",
	"atom":   "global|shared|shared::cta@7.8/30|shared::cluster@7.8/90?",

	// Pairs of integer types where the first does not hold all of the second.
	"narrowing": `u8 u16|u32|u64|s8|s16|s32|s64
		u16 u32|u64|s8|s16|s32|s64
		u32 u64|s8|s16|s32|s64
		u64 s8|s16|s32|s64
		s8 u8|u16|u32|u64|s16|s32|s64
		s16 u16|u32|u64|s32|s64
		s32 u32|u64|s64
		s64 u64`,

	"asem":   "relaxed@6.0/70|acquire@6.0/70|release@6.0/70|acq_rel@6.0/70?",
	"rsem":   "relaxed@6.0/70|release@6.0/70?",
	"ascope": "cta@5.0/60|cluster@7.8/90|gpu@5.0/60|sys@5.0/60?",
	"ints":   "u8|u16|u32|u64|s8|s16|s32|s64",

	"arrive":  "\nrelease@8.0|relaxed@8.6/90 cta|cluster@8.0/90",
	"await":   "\nacquire@8.0|relaxed@8.6/90 cta|cluster@8.0/90",
	"release": "\nrelease@8.0 cta",

	"dim":      "1d|2d|3d|4d|5d",
	"ctagroup": "cta_group::1@tcgen05|cta_group::2@tcgen05?",

	"l1":       "L1::evict_normal@7.4/70|L1::evict_unchanged@7.4/70|L1::evict_first@7.4/70|L1::evict_last@7.4/70|L1::no_allocate@7.4/70?",
	"l2":       "L2::evict_normal@8.8/100|L2::evict_first@8.8/100|L2::evict_last@8.8/100?",
	"prefetch": "L2::64B@7.4/75|L2::128B@7.4/75|L2::256B@7.4/80?",

	"data": `v2|v4? b8|b16|b32|u8|u16|u32|s8|s16|s32|f32
		v2? b64|u64|s64|f64
		b128@8.3/70`,
	"wide": `v4 b64|u64|s64|f64
		v8 b32|u32|s32|f32`,
	"mload":  "\nweak\nrelaxed|acquire $scope",
	"mstore": "\nweak\nrelaxed|release $scope",
	"mred":   "\nrelaxed|release $scope",
	"mhalf": `v2|v4|v8 f16|bf16
		v2|v4? f16x2|bf16x2`,
	"mnarrow": `v2|v4|v8 e5m2x2|e4m3x2
		v4|v8 e5m2|e4m3
		v2|v4? e5m2x4|e4m3x4`,
}

// moveRows: PTX ISA 9.7.9.3 to 9.7.9.7 and 9.7.9.19, 20, 23, 24; 9.7.17.
var moveRows = []row{
	{"mov", "pred", "p q", PipeALU, ""},
	{"mov", "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64", "d a", PipeALU, ""},
	{"mov", "v2|v4 b16|b32|u16|u32|s16|s32|f32", "dv sv", PipeALU, ""},
	{"mov", "v2 b64|u64|s64|f64", "dv sv", PipeALU, ""},
	{"mov", "b16|b32|b64|b128@8.3/70", "dpack a", PipeALU, ""},
	{"mov", "b16|b32|b64|b128@8.3/70", "d spack", PipeALU, ""},
	{"mov", "b128", "d s", PipeALU, "8.3/70"},
	{"isspacep", "const@3.1|global|local|shared|shared::cta@7.8/30|shared::cluster@7.8/90|param@7.7/70|param::entry@8.3/70", "p a:*", PipeALU, "2.0/20"},
	{"cvta", "const@3.1|global|local|shared|shared::cta@7.8/30|shared::cluster@7.8/90|param@7.7/70|param::entry@8.3/70 u32|u64", "d a", PipeALU, "2.0/20"},
	{"cvta", "to const@3.1|global|local|shared|shared::cta@7.8/30|shared::cluster@7.8/90|param@7.7/70|param::entry@8.3/70 u32|u64", "d a", PipeALU, "2.0/20"},
	{"mapa", "shared::cluster? u32|u64", "d a s:u32", PipeALU, "7.8/90"},
	{"getctarank", "shared::cluster? u32|u64", "d:u32 a", PipeALU, "7.8/90"},
	{"stacksave", "u32|u64", "d", PipeALU, "7.3/52"},
	{"stackrestore", "u32|u64", "r", PipeALU, "7.3/52"},
	{"alloca", "u32|u64", "d s i=1,2,4,8,16,32,64,128,256?", PipeALU, "7.3/52"},
}

// convertRows: PTX ISA 9.7.9.21 and 22.
var convertRows = []row{
	{"cvt", "$ints $ints", "d^ a:t1^", PipeALU, ""},
	{"cvt", "sat $narrowing", "d^ a:t1^", PipeALU, ""},
	{"cvt", "rni|rzi|rmi|rpi ftz? sat? $ints f32", "d^ a:t1^", PipeConvert, ""},
	{"cvt", "rni|rzi|rmi|rpi sat? $ints f64|f16@4.2/53", "d^ a:t1^", PipeConvert, ""},
	{"cvt", "rni|rzi|rmi|rpi $ints bf16@7.8/90", "d a:t1", PipeConvert, ""},
	{"cvt", "rn|rz|rm|rp sat? f32|f64|f16@4.2/53 $ints", "d^ a:t1^", PipeConvert, ""},
	{"cvt", "rn|rz|rm|rp bf16 $ints", "d a:t1", PipeConvert, "7.8/90"},
	{"cvt", "rn|rz|rm|rp sat? f32 f64", "d^ a:t1^", PipeConvert, ""},
	{"cvt", "rn|rz|rm|rp ftz sat? f32 f64", "d a:t1", PipeConvert, ""},
	{"cvt", "sat? f64 f32", "d^ a:t1^", PipeConvert, ""},
	{"cvt", "ftz sat? f64 f32", "d a:t1", PipeConvert, ""},
	{"cvt", "sat? f64 f16@4.2/53", "d^ a:t1^", PipeConvert, ""},
	{"cvt", "f64 bf16@7.8/90", "d a:t1", PipeConvert, ""},
	{"cvt", "ftz? sat? f32 f16@4.2/53", "d^ a:t1^", PipeALU, ""},
	{"cvt", "ftz@7.8/90? f32 bf16@7.1/80", "d a:t1", PipeALU, ""},
	{"cvt", "rn|rz|rm|rp ftz? sat? f16 f32", "d^ a:t1^", PipeALU, "4.2/53"},
	{"cvt", "rn|rz|rm|rp sat? f16 f64", "d^ a:t1^", PipeConvert, "4.2/53"},
	{"cvt", "rn|rz|rm|rp f16 bf16@7.8/90", "d a:t1", PipeConvert, "4.2/53"},
	{"cvt", "rn|rz|rm|rp bf16 f64|f16", "d a:t1", PipeConvert, "7.8/90"},
	{"cvt", "rni|rzi|rmi|rpi? ftz? sat? f32 f32", "d^ a:t1^", PipeALU, ""},
	{"cvt", "rni|rzi|rmi|rpi? sat? f64 f64", "d^ a:t1^", PipeFP64, ""},
	{"cvt", "rni|rzi|rmi|rpi? sat? f16 f16", "d^ a:t1^", PipeALU, "4.2/53"},
	{"cvt", "rni|rzi|rmi|rpi? bf16 bf16", "d a:t1", PipeALU, "7.8/90"},

	{"cvt", "rn|rz relu? satfinite@8.1? f16 f32", "d^ a:t1^", PipeALU, "7.0/80"},
	{"cvt", "rn|rz relu? satfinite@8.1? bf16 f32", "d a:t1", PipeALU, "7.0/80"},
	{"cvt", "rn|rz relu? satfinite@8.1? f16x2|bf16x2 f32", "d s:t1 s:t1", PipeALU, "7.0/80"},
	{"cvt", "rs relu? satfinite? f16x2|bf16x2 f32", "d s:t1 s:t1 r:b32!", PipeALU, "rs"},
	{"cvt", "rna satfinite@8.1? tf32 f32", "d s:t1", PipeALU, "7.0/80"},
	{"cvt", "rn|rz relu? tf32 f32", "d s:t1", PipeALU, "7.8/90"},
	{"cvt", "rn|rz satfinite relu? tf32 f32", "d s:t1", PipeALU, "8.6/100"},
	{"cvt", "rn satfinite relu? e4m3x2|e5m2x2 f32", "d s:t1 s:t1", PipeConvert, "7.8/90&8.1/89"},
	{"cvt", "rn satfinite relu? e4m3x2|e5m2x2 f16x2", "d s:t1", PipeConvert, "7.8/90&8.1/89"},
	{"cvt", "rn satfinite relu? e4m3x2|e5m2x2 bf16x2", "d s:t1", PipeConvert, "narrow"},
	{"cvt", "rn relu? f16x2 e4m3x2|e5m2x2", "d s:t1", PipeConvert, "7.8/90&8.1/89"},
	{"cvt", "rs relu? satfinite e4m3x4|e5m2x4|e2m3x4|e3m2x4|e2m1x4 f32", "d {4}:f32 r:b32!", PipeConvert, "rs"},
	{"cvt", "rn satfinite relu? e2m1x2|e2m3x2|e3m2x2 f32", "d s:t1 s:t1", PipeConvert, "blackwell"},
	{"cvt", "rn satfinite relu? e2m1x2|e2m3x2|e3m2x2 f16x2|bf16x2", "d s:t1", PipeConvert, "narrow"},
	{"cvt", "rn relu? f16x2 e2m1x2|e2m3x2|e3m2x2", "d s:t1", PipeConvert, "blackwell"},
	{"cvt", "rz|rp satfinite? ue8m0x2 f32", "d s:t1 s:t1", PipeConvert, "blackwell"},
	{"cvt", "rz|rp satfinite? ue8m0x2 bf16x2", "d s:t1", PipeConvert, "blackwell"},
	{"cvt", "rn bf16x2 ue8m0x2", "d s:t1", PipeConvert, "blackwell"},
	{"cvt", "rn satfinite relu? s2f6x2 f32", "d s:t1 s:t1", PipeConvert, "s2f6"},
	{"cvt", "rn satfinite relu? scaled::n2::ue8m0 s2f6x2 f32", "d s:t1 s:t1 r:b16!", PipeConvert, "s2f6"},
	{"cvt", "rn satfinite relu? s2f6x2 bf16x2", "d s:t1", PipeConvert, "s2f6"},
	{"cvt", "rn satfinite relu? scaled::n2::ue8m0 s2f6x2 bf16x2", "d s:t1 r:b16!", PipeConvert, "s2f6"},
	{"cvt", "rn satfinite? relu? bf16x2 s2f6x2", "d r:t1", PipeConvert, "s2f6"},
	{"cvt", "rn satfinite? relu? scaled::n2::ue8m0 bf16x2 s2f6x2", "d r:t1 r:b16!", PipeConvert, "s2f6"},

	{"cvt.pack", "sat u16|s16 s32", "d:u32 s:t1 s:t1", PipeConvert, "6.5/72"},
	{"cvt.pack", "sat u8|s8|u4@6.5/75|s4@6.5/75|u2@6.5/75|s2@6.5/75 s32 b32", "d:u32 s:t1 s:t1 s:u32", PipeConvert, "6.5/72"},
}

// memoryRows: PTX ISA 9.7.9.8 to 9.7.9.18. $hint is a cache policy: the
// modifier and the operand `policy` stand together or not at all.
var memoryRows = []row{
	{"ld", "weak@6.0/70? $from ca|cg|cs|lu|cv? $data", "dv^ m", PipeLSU, ""},
	{"ld", "weak@6.0/70? global? $l1 $hint $prefetch $data", "dv^ m policy", PipeLSU, "7.4/70"},
	{"ld", "weak@6.0/70? global? ca|cg|cs|lu|cv $hint $prefetch $data", "dv^ m policy", PipeLSU, "7.4/70"},
	{"ld", "volatile $strong $data", "dv^ m", PipeLSU, "1.1"},
	{"ld", "volatile local $data", "dv^ m", PipeLSU, "9.1"},
	{"ld", "volatile global? $prefetch $data", "dv^ m", PipeLSU, "1.1"},
	{"ld", "relaxed|acquire $scope $strong $data", "dv^ m", PipeLSU, "6.0/70"},
	{"ld", "relaxed|acquire $scope global? $l1 $hint $prefetch $data", "dv^ m policy", PipeLSU, "7.4/70"},
	{"ld", "weak? global? $l1 $l2 $hint $prefetch $wide", "dv^ m policy", PipeLSU, "8.8/100"},
	{"ld", "global nc $l1 $l2 $hint $prefetch $wide", "dv^ m policy", PipeLSU, "8.8/100"},
	{"ld", "volatile global? $wide", "dv^ m", PipeLSU, "8.8/100"},
	{"ld", "relaxed|acquire $scope global? $l1 $l2 $hint $prefetch $wide", "dv^ m policy", PipeLSU, "8.8/100"},
	{"ld", "mmio relaxed sys global? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv^ m", PipeLSU, "8.2/70"},
	{"ld", "global nc $l1 $hint $prefetch $data", "dv^ m policy", PipeLSU, "3.1/32"},
	{"ld", "global ca|cg|cs nc $hint $prefetch $data", "dv^ m policy", PipeLSU, "3.1/32"},
	{"ldu", "global? v2|v4? b8|b16|b32|u8|u16|u32|s8|s16|s32|f32", "dv^ m", PipeLSU, "2.0/20"},
	{"ldu", "global? v2? b64|u64|s64|f64", "dv^ m", PipeLSU, "2.0/20"},
	{"ldu", "global? b128", "dv^ m", PipeLSU, "8.3/70"},
	{"st", "weak@6.0/70? $to wb|cg|cs|wt? $data", "m sv^", PipeLSU, ""},
	{"st", "weak@6.0/70? global? $l1 $hint $data", "m sv^ policy", PipeLSU, "7.4/70"},
	{"st", "weak@6.0/70? global? wb|cg|cs|wt $hint $data", "m sv^ policy", PipeLSU, "7.4/70"},
	{"st", "volatile $strong $data", "m sv^", PipeLSU, "1.1"},
	{"st", "volatile local $data", "m sv^", PipeLSU, "9.1"},
	{"st", "relaxed|release $scope $strong $data", "m sv^", PipeLSU, "6.0/70"},
	{"st", "relaxed|release $scope global? $l1 $hint $data", "m sv^ policy", PipeLSU, "7.4/70"},
	{"st", "weak? global? $l1 $l2 $hint $wide", "m sv^ policy", PipeLSU, "8.8/100"},
	{"st", "volatile global? $wide", "m sv^", PipeLSU, "8.8/100"},
	{"st", "relaxed|release $scope global? $l1 $l2 $hint $wide", "m sv^ policy", PipeLSU, "8.8/100"},
	{"st", "mmio relaxed sys global? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv^", PipeLSU, "8.2/70"},
	{"st.async", "weak? shared::cluster? mbarrier::complete_tx::bytes v2|v4? b32|u32|s32|f32", "m sv m", PipeLSU, "8.1/90"},
	{"st.async", "weak? shared::cluster? mbarrier::complete_tx::bytes v2? b64|u64|s64|f64", "m sv m", PipeLSU, "8.1/90"},
	{"st.async", "weak? shared::cluster? mbarrier::complete_tx::bytes b128", "m s m", PipeLSU, "9.2/90"},
	{"st.async", "release gpu|sys global? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv", PipeLSU, "8.7/100"},
	{"st.async", "mmio release sys global? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv", PipeLSU, "8.7/100"},
	{"st.bulk", "weak? shared::cta?", "m size=8:u64 i=0", PipeLSU, "8.6/100"},

	{"multimem.ld_reduce", "$mload global? and|or|xor b32|b64", "d m", PipeLSU, "8.1/90"},
	{"multimem.ld_reduce", "$mload global? min|max u32|s32|u64|s64", "d m", PipeLSU, "8.1/90"},
	{"multimem.ld_reduce", "$mload global? add u32|s32|u64", "d m", PipeLSU, "8.1/90"},
	{"multimem.ld_reduce", "$mload global? add v2|v4? f32", "dv m", PipeLSU, "8.1/90"},
	{"multimem.ld_reduce", "$mload global? add f64", "d m", PipeLSU, "8.1/90"},
	{"multimem.ld_reduce", "$mload global? min|max|add $mhalf", "dv m", PipeLSU, "8.1/90"},
	{"multimem.ld_reduce", "$mload global? add acc::f32 $mhalf", "dv m", PipeLSU, "8.2/90"},
	{"multimem.ld_reduce", "$mload global? min|max|add $mnarrow", "dv m", PipeLSU, "multimem8"},
	{"multimem.ld_reduce", "$mload global? add acc::f16 $mnarrow", "dv m", PipeLSU, "multimem8"},
	{"multimem.st", "$mstore global? b32|b64|u32|u64|s32|s64|f64", "m s", PipeLSU, "8.1/90"},
	{"multimem.st", "$mstore global? v2|v4? f32", "m sv", PipeLSU, "8.1/90"},
	{"multimem.st", "$mstore global? $mhalf", "m sv", PipeLSU, "8.1/90"},
	{"multimem.st", "$mstore global? $mnarrow", "m sv", PipeLSU, "multimem8"},
	{"multimem.red", "$mred global? and|or|xor b32|b64", "m s", PipeLSU, "8.1/90"},
	{"multimem.red", "$mred global? min|max u32|s32|u64|s64", "m s", PipeLSU, "8.1/90"},
	{"multimem.red", "$mred global? add u32|s32|u64|f64", "m s", PipeLSU, "8.1/90"},
	{"multimem.red", "$mred global? add v2|v4? f32", "m sv", PipeLSU, "8.1/90"},
	{"multimem.red", "$mred global? add $mhalf", "m sv", PipeLSU, "8.1/90"},

	{"prefetch", "global|local? L1|L2", "m", PipeLSU, "2.0/20"},
	{"prefetch", "global? L2::evict_last|L2::evict_normal", "m", PipeLSU, "7.4/80"},
	{"prefetch", "const|param? tensormap", "m", PipeLSU, "8.0/90"},
	{"prefetchu", "L1", "m", PipeLSU, "2.0/20"},
	{"applypriority", "global? L2::evict_normal", "m i=128", PipeLSU, "7.4/80"},
	{"discard", "global? L2", "m i=128", PipeLSU, "7.4/80"},
	{"createpolicy", "range global? L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged L2::evict_first|L2::evict_unchanged? b64", "d:u64 m s:u32 s:u32", PipeALU, "7.4/80"},
	{"createpolicy", "fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged L2::evict_first|L2::evict_unchanged? b64", "d:u64 s:f32?", PipeALU, "7.4/80"},
	{"createpolicy", "cvt L2 b64", "d:u64 s:u64", PipeALU, "7.4/80"},
}

// atomicRows: PTX ISA 9.7.13.5 to 7.
var atomicRows = []row{
	{"atom", "$asem $ascope $atom and|or|xor|exch b32", "d_ m s", PipeLSU, "1.1"},
	{"atom", "$asem $ascope global? and|or|xor|exch $hint b32", "d_ m s policy", PipeLSU, "1.1"},
	{"atom", "$asem $ascope $atom and|or|xor b64", "d_ m s", PipeLSU, "3.1/32"},
	{"atom", "$asem $ascope global? and|or|xor $hint b64", "d_ m s policy", PipeLSU, "3.1/32"},
	{"atom", "$asem $ascope $atom exch b64", "d_ m s", PipeLSU, "1.2"},
	{"atom", "$asem $ascope global? exch $hint b64", "d_ m s policy", PipeLSU, "1.2"},
	{"atom", "$asem $ascope $atom exch b128", "d_ m s", PipeLSU, "8.3/90"},
	{"atom", "$asem $ascope global? exch $hint b128", "d_ m s policy", PipeLSU, "8.3/90"},
	{"atom", "$asem $ascope $atom cas b32|b64", "d_ m s s", PipeLSU, "1.1"},
	{"atom", "$asem $ascope $atom cas b16", "d_ m s s", PipeLSU, "6.3/70"},
	{"atom", "$asem $ascope $atom cas b128", "d_ m s s", PipeLSU, "8.3/90"},
	{"atom", "$asem $ascope $atom add|min|max u32|s32|u64", "d_ m s", PipeLSU, "1.1"},
	{"atom", "$asem $ascope global? add|min|max $hint u32|s32|u64", "d_ m s policy", PipeLSU, "1.1"},
	{"atom", "$asem $ascope $atom min|max s64", "d_ m s", PipeLSU, "3.1/32"},
	{"atom", "$asem $ascope global? min|max $hint s64", "d_ m s policy", PipeLSU, "3.1/32"},
	{"atom", "$asem $ascope $atom inc|dec u32", "d_ m s", PipeLSU, "1.1"},
	{"atom", "$asem $ascope global? inc|dec $hint u32", "d_ m s policy", PipeLSU, "1.1"},
	{"atom", "$asem $ascope $atom add f32@2.0/20|f64@5.0/60", "d_ m s", PipeLSU, ""},
	{"atom", "$asem $ascope global? add $hint f32@2.0/20|f64@5.0/60", "d_ m s policy", PipeLSU, ""},
	{"atom", "$asem $ascope $atom add noftz f16@6.3/70|f16x2@6.2/60|bf16@7.8/90|bf16x2@7.8/90", "d_ m s", PipeLSU, ""},
	{"atom", "$asem $ascope global? add noftz $hint f16@6.3/70|f16x2@6.2/60|bf16@7.8/90|bf16x2@7.8/90", "d_ m s policy", PipeLSU, ""},
	{"atom", "$asem $ascope global? add $hint v2|v4 f32", "dv m sv policy", PipeLSU, "8.1/90"},
	{"atom", "$asem $ascope global? add|min|max noftz $hint v2|v4|v8 f16|bf16", "dv m sv policy", PipeLSU, "8.1/90"},
	{"atom", "$asem $ascope global? add|min|max noftz $hint v2|v4 f16x2|bf16x2", "dv m sv policy", PipeLSU, "8.1/90"},

	{"red", "$rsem $ascope $atom and|or|xor b32|b64@3.1/32", "m s", PipeLSU, "1.2"},
	{"red", "$rsem $ascope global? and|or|xor $hint b32|b64@3.1/32", "m s policy", PipeLSU, "1.2"},
	{"red", "$rsem $ascope $atom add|min|max u32|s32|u64", "m s", PipeLSU, "1.2"},
	{"red", "$rsem $ascope global? add|min|max $hint u32|s32|u64", "m s policy", PipeLSU, "1.2"},
	{"red", "$rsem $ascope $atom min|max s64", "m s", PipeLSU, "3.1/32"},
	{"red", "$rsem $ascope global? min|max $hint s64", "m s policy", PipeLSU, "3.1/32"},
	{"red", "$rsem $ascope $atom inc|dec u32", "m s", PipeLSU, "1.2"},
	{"red", "$rsem $ascope global? inc|dec $hint u32", "m s policy", PipeLSU, "1.2"},
	{"red", "$rsem $ascope $atom add f32@2.0/20|f64@5.0/60", "m s", PipeLSU, ""},
	{"red", "$rsem $ascope global? add $hint f32@2.0/20|f64@5.0/60", "m s policy", PipeLSU, ""},
	{"red", "$rsem $ascope $atom add noftz f16@6.3/70|f16x2@6.2/60|bf16@7.8/90|bf16x2@7.8/90", "m s", PipeLSU, ""},
	{"red", "$rsem $ascope global? add noftz $hint f16@6.3/70|f16x2@6.2/60|bf16@7.8/90|bf16x2@7.8/90", "m s policy", PipeLSU, ""},
	{"red", "$rsem $ascope global? add $hint v2|v4 f32", "m sv policy", PipeLSU, "8.1/90"},
	{"red", "$rsem $ascope global? add|min|max noftz $hint v2|v4|v8 f16|bf16", "m sv policy", PipeLSU, "8.1/90"},
	{"red", "$rsem $ascope global? add|min|max noftz $hint v2|v4 f16x2|bf16x2", "m sv policy", PipeLSU, "8.1/90"},

	{"red.async", "relaxed cluster shared::cluster? mbarrier::complete_tx::bytes inc|dec u32", "m s m", PipeLSU, "8.1/90"},
	{"red.async", "relaxed cluster shared::cluster? mbarrier::complete_tx::bytes min|max u32|s32", "m s m", PipeLSU, "8.1/90"},
	{"red.async", "relaxed cluster shared::cluster? mbarrier::complete_tx::bytes and|or|xor b32", "m s m", PipeLSU, "8.1/90"},
	{"red.async", "relaxed cluster shared::cluster? mbarrier::complete_tx::bytes add u32|s32|u64", "m s m", PipeLSU, "8.1/90"},
	{"red.async", "release gpu|sys global? add u32|s32|u64|s64", "m s", PipeLSU, "8.7/100"},
	{"red.async", "mmio release sys global? add u32|s32|u64|s64", "m s", PipeLSU, "8.7/100"},
}
