package ptx

// textureRows: PTX ISA 9.7.10 and 9.7.11. Operands are looked at by number
// alone.
var textureRows = []row{
	{"tex", "1d|2d|3d|a1d|a2d|cube|acube|2dms|a2dms v4 u32|s32|f16@4.2/53|f32 s32|f32", "any m+ any? any?", PipeTexture, ""},
	{"tex", "1d|2d|3d|a1d|a2d|cube|acube|2dms|a2dms v2 f16x2 s32|f32", "any m+ any? any?", PipeTexture, "4.2/53"},
	{"tex", "base 1d|2d|3d|a1d|a2d|cube|acube v4 u32|s32|f16@4.2/53|f32 s32|f32", "any m+ any? any?", PipeTexture, "3.1/20"},
	{"tex", "level 1d|2d|3d|a1d|a2d|cube|acube v4 u32|s32|f16@4.2/53|f32 s32|f32", "any m+ any any? any?", PipeTexture, "3.1/20"},
	{"tex", "grad 1d|2d|3d|a1d|a2d|cube|acube v4 u32|s32|f16@4.2/53|f32 s32|f32", "any m+ any any any? any?", PipeTexture, "3.1/20"},
	{"tex", "base 1d|2d|3d|a1d|a2d|cube|acube v2 f16x2 s32|f32", "any m+ any? any?", PipeTexture, "4.2/53"},
	{"tex", "level 1d|2d|3d|a1d|a2d|cube|acube v2 f16x2 s32|f32", "any m+ any any? any?", PipeTexture, "4.2/53"},
	{"tex", "grad 1d|2d|3d|a1d|a2d|cube|acube v2 f16x2 s32|f32", "any m+ any any any? any?", PipeTexture, "4.2/53"},
	{"tld4", "r|g|b|a 2d|a2d@4.3/30|cube@4.3/30|acube@4.3/30 v4 u32|s32|f32 f32", "any m+ any? any?", PipeTexture, "2.2/20"},
	{"txq", "width|height|depth|channel_data_type|channel_order|normalized_coords|array_size@4.1|num_mipmap_levels@4.1|num_samples@4.1|force_unnormalized_coords|filter_mode|addr_mode_0|addr_mode_1|addr_mode_2 b32", "d m", PipeTexture, "1.5"},
	{"txq", "level width|height|depth b32", "d m s:u32", PipeTexture, "4.3/30"},
	{"istypep", "texref|samplerref|surfref", "p a:*", PipeALU, "4.0/30"},
	{"suld", "b 1d|2d|3d|a1d|a2d ca|cg|cs|cv? v2|v4? b8|b16|b32|b64 trap|clamp|zero", "any m+", PipeTexture, "1.5"},
	{"sust", "b 1d|2d|3d|a1d|a2d wb|cg|cs|wt? v2|v4? b8|b16|b32|b64 trap|clamp|zero", "m+ any", PipeTexture, "1.5"},
	{"sust", "p 1d|2d|3d v2|v4? b32 trap|clamp|zero", "m+ any", PipeTexture, "2.0/20"},
	{"sured", "b add|min|max|and|or 1d|2d|3d u32|u64|s32|b32|s64 trap|clamp|zero", "m+ s", PipeTexture, "2.0/20"},
	{"sured", "p add|min|max|and|or 1d|2d|3d b32|b64 trap|clamp|zero", "m+ s", PipeTexture, "2.0/20"},
	{"suq", "width|height|depth|channel_data_type|channel_order|array_size@4.1|memory_layout@4.2 b32", "d m", PipeTexture, "1.5"},
}

// videoRows: PTX ISA 9.7.18. Selectors such as .b0 stand at the operands.
var videoRows = concat(
	video([]string{"vadd", "vsub", "vabsdiff", "vmin", "vmax"},
		row{"", "u32|s32 u32|s32 u32|s32 sat?", "d:u32 s:u32 s:u32 s:u32?", PipeALU, "2.0/20"},
		row{"", "u32|s32 u32|s32 u32|s32 sat? add|min|max", "d:u32 s:u32 s:u32 s:u32", PipeALU, "2.0/20"},
		row{"", "u32|s32 u32|s32 u32|s32 sat?", "dsel s:u32 s:u32 s:u32", PipeALU, "2.0/20"}),
	video([]string{"vshl", "vshr"},
		row{"", "u32|s32 u32|s32 u32 sat? clamp|wrap", "d:u32 s:u32 s:u32 s:u32?", PipeALU, "2.0/20"},
		row{"", "u32|s32 u32|s32 u32 sat? clamp|wrap add|min|max", "d:u32 s:u32 s:u32 s:u32", PipeALU, "2.0/20"},
		row{"", "u32|s32 u32|s32 u32 sat? clamp|wrap", "dsel s:u32 s:u32 s:u32", PipeALU, "2.0/20"}),
	video([]string{"vmad"},
		row{"", "u32|s32 u32|s32 u32|s32 po? sat? shr7|shr15?", "d:u32 s:u32 s:u32 s:u32", PipeFMA, "2.0/20"}),
	video([]string{"vset"},
		row{"", "u32|s32 u32|s32 eq|ne|lt|le|gt|ge", "d:u32 s:u32 s:u32 s:u32?", PipeALU, "2.0/20"},
		row{"", "u32|s32 u32|s32 eq|ne|lt|le|gt|ge add|min|max", "d:u32 s:u32 s:u32 s:u32", PipeALU, "2.0/20"},
		row{"", "u32|s32 u32|s32 eq|ne|lt|le|gt|ge", "dsel s:u32 s:u32 s:u32", PipeALU, "2.0/20"}),
	video([]string{"vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4"},
		row{"", "u32|s32 u32|s32 u32|s32 sat?", "d:u32 r:u32 r:u32 r:u32", PipeALU, "3.0/30"},
		row{"", "u32|s32 u32|s32 u32|s32 add", "d:u32 r:u32 r:u32 r:u32", PipeALU, "3.0/30"}),
	video([]string{"vset2", "vset4"},
		row{"", "u32|s32 u32|s32 eq|ne|lt|le|gt|ge add?", "d:u32 r:u32 r:u32 r:u32", PipeALU, "3.0/30"}),
)

// video gives each name the rows.
func video(names []string, rows ...row) []row {
	var all []row
	for _, n := range names {
		for _, r := range rows {
			r.name = n
			all = append(all, r)
		}
	}
	return all
}

func concat(parts ...[]row) []row {
	var all []row
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
