package vm_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// collectiveCase is an instruction of a whole warp: its text, where %a is a
// lane's value (%q with 64 bits), %b and %c further ones, %z the result and %p a
// predicate that comes out in its top bit; and what each lane gets.
type collectiveCase struct {
	target, text string
	want         func(a []uint64, b, c []uint32, lane int) uint32
}

// few makes values that meet.
func few(r *rand.Rand) uint64 { return uint64(r.IntN(3)) | uint64(r.IntN(2))<<40 }

func collectiveCases() []collectiveCase {
	list := append(shuffleCases(), voteCases()...)
	ints := func(op string, s bool, f func(x, y int64) int64) {
		typ := map[bool]string{true: "s32", false: "u32"}[s]
		list = append(list, collectiveCase{"sm_80", "redux.sync." + op + "." + typ + " %z, %b, 0xffffffff;", func(_ []uint64, b, _ []uint32, _ int) uint32 {
			wide := func(v uint32) int64 {
				if s {
					return int64(int32(v))
				}
				return int64(v)
			}
			acc := wide(b[0])
			for _, v := range b[1:] {
				acc = f(acc, wide(v))
			}
			return uint32(acc)
		}})
	}
	for _, s := range []bool{true, false} {
		ints("add", s, func(x, y int64) int64 { return x + y })
		ints("min", s, func(x, y int64) int64 { return min(x, y) })
		ints("max", s, func(x, y int64) int64 { return max(x, y) })
	}
	for op, f := range map[string]func(x, y uint32) uint32{
		"and": func(x, y uint32) uint32 { return x & y }, "or": func(x, y uint32) uint32 { return x | y }, "xor": func(x, y uint32) uint32 { return x ^ y },
	} {
		list = append(list, collectiveCase{"sm_80", "redux.sync." + op + ".b32 %z, %b, 0xffffffff;", func(_ []uint64, b, _ []uint32, _ int) uint32 {
			acc := b[0]
			for _, v := range b[1:] {
				acc = f(acc, v)
			}
			return acc
		}})
	}
	for _, op := range []string{"min", "max"} {
		for _, mod := range []string{"", ".abs", ".NaN", ".abs.NaN"} {
			// %c has NaN in some lanes, %b in none.
			for _, reg := range []string{"%b", "%c"} {
				list = append(list, collectiveCase{"sm_100a", fmt.Sprintf("redux.sync.%s%s.f32 %%z, %s, 0xffffffff;", op, mod, reg), func(_ []uint64, b, c []uint32, _ int) uint32 {
					in := b
					if reg == "%c" {
						in = c
					}
					best, some := uint32(0), false
					for _, v := range in {
						if strings.Contains(mod, "abs") {
							v &^= 1 << 31
						}
						x, y := float64(float(v)), float64(float(best))
						switch {
						case x != x && strings.Contains(mod, "NaN"):
							return 0x7fffffff
						case x != x:
						case !some, op == "min" && x < y, op == "max" && x > y, x == y && math.Signbit(x) == (op == "min"):
							best, some = v, true
						}
					}
					if !some {
						return 0x7fffffff
					}
					return best
				}})
			}
		}
	}
	for name, of := range map[string]string{"b32": "%b", "b64": "%q"} {
		same := func(a []uint64, b []uint32, i int) (m uint32) {
			for j := range a {
				if name == "b64" && a[j] == a[i] || name == "b32" && b[j] == b[i] {
					m |= 1 << j
				}
			}
			return m
		}
		list = append(list,
			collectiveCase{"sm_80", "match.any.sync." + name + " %z, " + of + ", 0xffffffff;", func(a []uint64, b, _ []uint32, lane int) uint32 { return same(a, b, lane) }},
			collectiveCase{"sm_80", "match.all.sync." + name + " %z|%p, " + of + ", 0xffffffff; selp.b32 %x, 0x55, 0x33, %p; add.u32 %z, %z, %x;", func(a []uint64, b, _ []uint32, _ int) uint32 {
				if m := same(a, b, 0); m == math.MaxUint32 {
					return m + 0x55
				}
				return 0x33
			}},
		)
	}
	return append(list,
		collectiveCase{"sm_80", "activemask.b32 %z;", func([]uint64, []uint32, []uint32, int) uint32 { return math.MaxUint32 }},
		collectiveCase{"sm_80", "mov.u32 %z, 0; @%o activemask.b32 %z;", func(_ []uint64, b, _ []uint32, lane int) uint32 {
			return oddLanes(b) & -(b[lane] & 1)
		}},
		collectiveCase{"sm_90", "elect.sync %z|%p, 0xffffffff; selp.b32 %x, 100, 0, %p; add.u32 %z, %z, %x;", func(_ []uint64, _, _ []uint32, lane int) uint32 {
			return 100 * uint32(yes(lane == 0))
		}},
	)
}

// oddLanes are the lanes whose value is odd: those of the predicate %o.
func oddLanes(b []uint32) (m uint32) {
	for i, v := range b {
		m |= v & 1 << i
	}
	return m
}

// shuffleCases follow PTX's pseudo-code of shfl: c holds the clamp and, from bit
// 8, the mask of a segment.
func shuffleCases() []collectiveCase {
	var list []collectiveCase
	for _, mode := range []string{"up", "down", "bfly", "idx"} {
		for _, c := range []uint32{31, 0, 0x1f00, 0x181f, 0x1c03, 0x1e01, 0x100f} {
			for _, sync := range []string{".sync", ""} {
				target, mask := "sm_80", ", 0xffffffff"
				if sync == "" {
					target, mask = "sm_60", ""
				}
				text := fmt.Sprintf("shfl%s.%s.b32 %%z|%%p, %%b, %%c, %d%s; selp.b32 %%x, 0x80000000, 0, %%p; xor.b32 %%z, %%z, %%x;", sync, mode, c, mask)
				list = append(list, collectiveCase{target, text, func(_ []uint64, b, by []uint32, lane int) uint32 {
					seg, clamp := int(c>>8&31), int(c&31)
					delta := int(by[lane] & 31)
					last := lane&seg | clamp&^seg
					least := lane & seg
					j, ok := 0, false
					switch mode {
					case "up":
						j = lane - delta
						ok = j >= last
					case "down":
						j = lane + delta
						ok = j <= last
					case "bfly":
						j = lane ^ delta
						ok = j <= last
					case "idx":
						j = least | delta&^seg
						ok = j <= last
					}
					if !ok {
						return b[lane]
					}
					return b[j] ^ 1<<31
				}})
			}
		}
	}
	return list
}

func voteCases() []collectiveCase {
	var list []collectiveCase
	for _, neg := range []string{"", "!"} {
		votes := func(b []uint32) uint32 {
			if neg != "" {
				return ^oddLanes(b)
			}
			return oddLanes(b)
		}
		for _, sync := range []string{".sync", ""} {
			target, mask := "sm_80", ", 0xffffffff"
			if sync == "" {
				target, mask = "sm_60", ""
			}
			for op, f := range map[string]func(m uint32) bool{
				"all": func(m uint32) bool { return m == math.MaxUint32 }, "any": func(m uint32) bool { return m != 0 },
				"uni": func(m uint32) bool { return m == 0 || m == math.MaxUint32 },
			} {
				list = append(list, collectiveCase{target, fmt.Sprintf("vote%s.%s.pred %%p, %s%%o%s; selp.b32 %%z, 1, 0, %%p;", sync, op, neg, mask), func(_ []uint64, b, _ []uint32, _ int) uint32 {
					return uint32(yes(f(votes(b))))
				}})
			}
			list = append(list, collectiveCase{target, fmt.Sprintf("vote%s.ballot.b32 %%z, %s%%o%s;", sync, neg, mask), func(_ []uint64, b, _ []uint32, _ int) uint32 { return votes(b) }})
		}
	}
	return list
}

func TestCollectiveInstructions(t *testing.T) {
	for _, c := range collectiveCases() {
		t.Run(c.text, func(t *testing.T) {
			const warps = 8
			r := rand.New(rand.NewPCG(4, 4))
			var in []byte
			var a []uint64
			var b, by []uint32
			for i := range 32 * warps {
				q, x, y := few(r), uint32(anyBits(r, 32)), r.Uint32()
				switch i / 32 { // all alike in the first warps
				case 0:
					q, x = 7, 4
				case 1:
					q, x = 7, 5
				}
				if single.isNaN(uint64(x)) {
					x = 0x3f800000
				}
				if r.IntN(8) == 0 {
					y = 0x7fc00000
				}
				if i/32 == 7 {
					y = 0xffc00001
				}
				a, b, by = append(a, q), append(b, x), append(by, y)
				in = append(in, longs(q, uint64(y)<<32|uint64(x))...)
			}
			p := small{
				target: c.target, regs: ".reg .b64 %ad, %q; .reg .b32 %b, %c, %z, %x; .reg .f32 %f; .reg .pred %p, %o;",
				body: "mad.wide.u32 %ad, %t, 16, %in0; ld.global.b64 %q, [%ad]; ld.global.v2.b32 {%b, %c}, [%ad+8]; and.b32 %x, %b, 1; setp.ne.u32 %o, %x, 0;\n" +
					c.text + "\nmad.wide.u32 %ad, %t, 4, %in1; st.global.b32 [%ad], %z;",
				block: 32 * warps,
			}
			out, report := p.run(t, in, make([]byte, 128*warps))
			require.Empty(t, report.Faults)
			got := toWords(out[1])
			for i := range got {
				w := i / 32 * 32
				require.Equal(t, c.want(a[w:w+32], b[w:w+32], by[w:w+32], i%32), got[i], "warp %d lane %d", i/32, i%32)
			}
		})
	}
}

// TestSpecialRegisters reads every special register; those that say where a
// thread is say so.
func TestSpecialRegisters(t *testing.T) {
	lane := func(th int) uint32 { return uint32(th % 32) }
	fixed := map[string]func(th int) uint32{
		"%tid.x": func(th int) uint32 { return uint32(th) }, "%tid.y": func(int) uint32 { return 0 }, "%ntid.x": func(int) uint32 { return 64 }, "%ntid.z": func(int) uint32 { return 1 },
		"%ctaid.x": func(int) uint32 { return 0 }, "%nctaid.x": func(int) uint32 { return 1 }, "%laneid": lane, "%warpid": func(th int) uint32 { return uint32(th / 32) },
		"%lanemask_eq": func(th int) uint32 { return 1 << lane(th) }, "%lanemask_lt": func(th int) uint32 { return 1<<lane(th) - 1 },
		"%lanemask_le": func(th int) uint32 { return bits.Reverse32(math.MaxUint32 << (31 - lane(th))) }, "%lanemask_gt": func(th int) uint32 { return ^uint32(0) << lane(th) << 1 },
		"%lanemask_ge": func(th int) uint32 { return math.MaxUint32 << lane(th) }, "%nwarpid": func(int) uint32 { return 2 },
		"%cluster_nctarank": func(int) uint32 { return 1 }, "%envreg3": func(int) uint32 { return 0 }, "%reserved_smem_offset_end": func(int) uint32 { return 1024 },
	}
	seen := 0
	for s := ptx.NoSpecial + 1; s.Type() != ptx.NoType; s++ {
		name := s.String()
		p := small{target: "sm_90", regs: ".reg .b64 %ad, %q; .reg .b32 %x; .reg .pred %p;", block: 64}
		switch s.Type().Bits() {
		case 1:
			p.body = "mov.pred %p, " + name + "; selp.b32 %x, 1, 0, %p;"
		case 64:
			p.body = "mov.u64 %q, " + name + "; cvt.u32.u64 %x, %q;"
		default:
			p.body = "mov.u32 %x, " + name + ";"
		}
		p.body += "mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %x;"
		out, report, err := p.try(t, make([]byte, 256))
		require.NoError(t, err, name)
		require.Empty(t, report.Faults, name)
		if want, ok := fixed[name]; ok {
			seen++
			for th, got := range toWords(out[0]) {
				require.Equal(t, want(th), got, "%s of thread %d", name, th)
			}
		}
	}
	require.Equal(t, len(fixed), seen)
}
