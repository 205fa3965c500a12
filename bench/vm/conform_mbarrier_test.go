package vm_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// barrierModel is an mbarrier as PTX ISA 9.7.13.15 describes it.
type barrierModel struct {
	pending, expected int
	bytes             int
	phases            int
	layout            int
}

// settle completes the phase when nothing is pending.
func (m *barrierModel) settle() {
	if m.pending == 0 && m.bytes == 0 {
		m.phases++
		m.pending = m.expected
	}
}

// barrierProgram writes instructions on the mbarrier at sm, and what each must
// store to in0, word by word.
type barrierProgram struct {
	barrierModel
	r      *rand.Rand
	body   strings.Builder
	want   []uint32
	tokens []tokenModel
}

// tokenModel is a state that an arrival returned: its phase and register.
type tokenModel struct{ phase, register int }

func (b *barrierProgram) line(format string, args ...any) { fmt.Fprintf(&b.body, format+"\n", args...) }

func (b *barrierProgram) store(register string, want int) {
	b.line("st.global.u32 [%%in0+%d], %s;", 4*len(b.want), register)
	b.want = append(b.want, uint32(want))
}

func (b *barrierProgram) storePredicate(p string, want bool) {
	b.line("selp.u32 %%x, 1, 0, %s;", p)
	b.store("%x", truthOf(want))
}

func (b *barrierProgram) pick(words ...string) string { return words[b.r.IntN(len(words))] }

// at is the mbarrier's address in a space: its word, and the operand.
func (b *barrierProgram) at(spaces ...string) (word, operand string) {
	switch space := b.pick(spaces...); space {
	case "":
		return "", "[%g]"
	case "::cluster": // of a remote block, here the own one
		return ".shared::cluster", "[%far]"
	default:
		return space, b.pick("[%a]", "[sm]")
	}
}

var ownSpaces = []string{"", ".shared", ".shared::cta"}

// arrive is mbarrier.arrive or arrive_drop, with a count, bytes, or neither.
func (b *barrierProgram) arrive() {
	name, n, bytes := "arrive", 1, 0
	drops := b.r.IntN(5) == 0 && b.expected > 1
	if drops {
		name = "arrive_drop"
	}
	most := b.pending
	if drops {
		most = min(most, b.expected-1)
	}
	operand := ""
	switch b.r.IntN(4) {
	case 0:
		n = 1 + b.r.IntN(max(min(most, 4), 1))
		operand = fmt.Sprintf(", %d", n)
	case 1:
		bytes = 16 * b.r.IntN(4)
		name, operand = name+".expect_tx", fmt.Sprintf(", %d", bytes)
	case 2:
		if most < 2 || b.bytes != 0 {
			break
		}
		n = 1 + b.r.IntN(min(most-1, 4)) // must not complete the phase
		name, operand = name+".noComplete"+b.pick("", ".release.cta"), fmt.Sprintf(", %d", n)
	}
	if most < 1 {
		return
	}
	if !strings.Contains(name, "noComplete") {
		name += b.pick("", ".release.cta", ".relaxed.cta", ".release.cluster", ".relaxed.cluster")
	}
	spaces := ownSpaces
	if !strings.Contains(name, "noComplete") {
		spaces = append([]string{"::cluster"}, ownSpaces...)
	}
	word, place := b.at(spaces...)
	token := len(b.tokens)
	before := b.pending
	if word == ".shared::cluster" || b.r.IntN(4) == 0 || token == 40 {
		b.line("mbarrier.%s%s.b64 _, %s%s;", name, word, place, operand)
	} else {
		b.line("mbarrier.%s%s.b64 %%s%d, %s%s;", name, word, token, place, operand)
		b.tokens = append(b.tokens, tokenModel{b.phases, token})
		b.line("mbarrier.pending_count.b64 %%y, %%s%d;", token)
		b.store("%y", before)
	}
	b.bytes += bytes
	if drops {
		b.expected -= n
	}
	b.pending -= n
	b.settle()
}

// transact is expect_tx and complete_tx.
func (b *barrierProgram) transact() {
	word, place := b.at(append([]string{"::cluster"}, ownSpaces...)...)
	how := b.pick("", ".relaxed.cta", ".relaxed.cluster")
	if b.bytes == 0 || b.r.IntN(2) == 0 {
		n := 8 * (1 + b.r.IntN(6))
		b.line("mbarrier.expect_tx%s%s.b64 %s, %d;", how, word, place, n)
		b.bytes += n
		return
	}
	n := b.bytes
	if b.r.IntN(2) == 0 {
		n = 1 + b.r.IntN(n)
	}
	b.line("mov.u32 %%y, %d; mbarrier.complete_tx%s%s.b64 %s, %%y;", n, how, word, place)
	b.bytes -= n
	b.settle()
}

// wait asks for a phase by its parity or by a state, the current one or the one
// before.
func (b *barrierProgram) wait() {
	word, place := b.at(ownSpaces...)
	name := b.pick("test_wait", "try_wait")
	hint := ""
	if name == "try_wait" {
		hint = b.pick("", ", 0", ", 100", ", %hint")
	}
	phase := b.pick("", ".phase_type::primary")
	how := b.pick("", ".acquire.cta", ".relaxed.cta", ".acquire.cluster", ".relaxed.cluster")
	done, value := "%p", ""
	if phase != "" {
		done, value = b.pick("%p", "%p|%q", "%p|%q"), ""
		if done == "%p|%q" {
			b.line("setp.ne.u32 %%q, 1, 0; mov.b32 %%y, 77; cvt.u8.u32 %%v, %%y;")
			value = b.pick("", "%v, ")
		}
	}
	var operand string
	over := false
	if b.r.IntN(2) == 0 {
		parity := b.r.IntN(2)
		over = b.phases&1 != parity
		name += ".parity"
		operand = b.pick(fmt.Sprint(parity), fmt.Sprintf("%%parity%d", parity))
		if done == "%p" && b.r.IntN(4) == 0 {
			phase = ".phase_type::conditional"
		}
	} else {
		var known []tokenModel
		for _, x := range b.tokens {
			if b.phases-x.phase <= 1 {
				known = append(known, x)
			}
		}
		if len(known) == 0 {
			return
		}
		x := known[b.r.IntN(len(known))]
		over = b.phases != x.phase
		operand = fmt.Sprintf("%%s%d", x.register)
	}
	b.line("mbarrier.%s%s%s%s.b64 %s, %s%s, %s%s;", name, phase, how, word, done, value, place, operand, hint)
	b.storePredicate("%p", over)
	if done != "%p" {
		b.storePredicate("%q", false)
	}
	if value != "" {
		b.line("cvt.u32.u8 %%y, %%v;")
		b.store("%y", 0)
	}
}

// again makes the object anew.
func (b *barrierProgram) again(first bool) {
	word, place := b.at(ownSpaces...)
	if !first {
		b.line("mbarrier.inval%s.b64 %s;", word, place)
	}
	n := 1 + b.r.IntN(9)
	layout := b.pick("", ".layout::v0", ".layout::v1")
	b.line("mbarrier.init%s%s.b64 %s, %d;", layout, word, place, n)
	b.barrierModel = barrierModel{pending: n, expected: n, layout: truthOf(layout == ".layout::v1")}
	b.tokens = b.tokens[:0]
}

// TestMbarrierStates holds random sequences of all operations on mbarriers, in all
// their spellings, to a model.
func TestMbarrierStates(t *testing.T) {
	for seed := range uint64(40) {
		b := &barrierProgram{r: rand.New(rand.NewPCG(seed, 12))}
		b.again(true)
		for range 60 {
			switch b.r.IntN(16) {
			case 0:
				b.again(false)
			case 1:
				v := b.r.IntN(2)
				word, place := b.at("", ".shared::cta")
				b.line("mbarrier.check_layout.layout::v%d%s.b64 %%p, %s;", v, word, place)
				b.storePredicate("%p", v == b.layout)
			case 2, 3, 4:
				b.transact()
			case 5, 6, 7, 8, 9:
				b.wait()
			default:
				b.arrive()
			}
		}
		p := small{
			target: "sm_90", decls: ".shared .align 8 .b8 sm[8];",
			regs: ".reg .b32 %a, %far, %x, %y, %hint, %parity<2>; .reg .b8 %v; .reg .b64 %g, %s<64>; .reg .pred %p, %q;",
			body: "mov.u32 %a, sm; mapa.shared::cluster.u32 %far, %a, 0; mov.u64 %g, sm; cvta.shared.u64 %g, %g; mov.u32 %hint, 1000; mov.u32 %parity0, 0; mov.u32 %parity1, 1;\n" + b.body.String(),
		}
		p.everywhere(t, func(out [][]byte, rep *bench.Report) {
			require.Empty(t, rep.Faults, p.body)
			require.Equal(t, b.want, toWords(out[0]), "seed %d: %s", seed, p.body)
		}, make([]byte, 4*len(b.want)))
	}
}

// TestMbarrierArriveRemotely: every block of a cluster arrives at every other's
// mbarrier, with counts and bytes, and each sees its own complete as often.
func TestMbarrierArriveRemotely(t *testing.T) {
	for _, drop := range []string{"arrive", "arrive_drop"} {
		for _, how := range []string{"", ".release.cluster"} {
			p := small{
				target: "sm_90", decls: ".shared .align 8 .b8 sm[64];", cluster: 4, grid: 8, block: 32,
				regs: clusterRegs + ".reg .b32 %r, %fbar; .reg .pred %p, %q;",
				body: `mov.u32 %rank, %cluster_ctarank; mov.u32 %a, sm; setp.eq.u32 %q, %t, 0;
@%q mbarrier.init.shared.b64 [%a], 12; fence.mbarrier_init.release.cluster; ` + clusterSync + `
@!%q bra WAIT; mov.u32 %r, 0;
L: mapa.shared::cluster.u32 %far, %a, %r; add.u32 %b, %rank, 1; mad.lo.u32 %c, %rank, 4, 8;
mad.lo.u32 %c, %rank, 4, %far; st.shared::cluster.u32 [%c+16], %b;
mbarrier.` + drop + how + `.shared::cluster.b64 _, [%far], 2;
mbarrier.` + drop + `.expect_tx` + how + `.shared::cluster.b64 _, [%far], 8; mbarrier.complete_tx.shared::cluster.b64 [%far], 8;
add.u32 %r, %r, 1; setp.lt.u32 %p, %r, 4; @%p bra L;
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p, [%a], 0; @!%p bra WAIT;
ld.shared.v4.u32 {%b, %c, %n, %far}, [%a+16]; mov.u32 %r, %ctaid.x; mad.lo.u32 %r, %r, 32, %t; mad.wide.u32 %g, %r, 16, %in0; st.global.v4.u32 [%g], {%b, %c, %n, %far};` + clusterSync,
			}
			p.everywhere(t, func(out [][]byte, rep *bench.Report) {
				require.Empty(t, rep.Faults)
				for i, v := range toWords(out[0]) {
					require.EqualValues(t, i%4+1, v)
				}
			}, make([]byte, 8*32*16))
		}
	}
}

// TestArrivalsOfCopies: an arrival that waits for copies waits for those before it
// alone, so that each of two stages tells of its own.
func TestArrivalsOfCopies(t *testing.T) {
	for _, noinc := range []string{"", ".noinc"} {
		for _, first := range []int{0, 1} { // the stage that is waited for first
			count := 32
			if noinc == "" {
				count = 1 // more arrivals come with the copies
			}
			p := small{
				decls: ".shared .align 16 .b8 sm[1040];", block: 32, regs: ".reg .b32 %a, %b, %c, %d; .reg .b64 %g, %s<2>; .reg .pred %p, %q;",
				body: fmt.Sprintf(`mov.u32 %%a, sm; setp.eq.u32 %%q, %%t, 0; @%%q mbarrier.init.shared.b64 [%%a+1024], %d; @%%q mbarrier.init.shared.b64 [%%a+1032], %d; bar.sync 0;
mad.lo.u32 %%c, %%t, 16, %%a; mad.wide.u32 %%g, %%t, 16, %%in0;
cp.async.cg.shared.global [%%c], [%%g], 16; cp.async.mbarrier.arrive%s.shared.b64 [%%a+1024];
cp.async.ca.shared.global [%%c+512], [%%g+512], 8; cp.async.ca.shared.global [%%c+520], [%%g+520], 8; cp.async.mbarrier.arrive%s.shared.b64 [%%a+1032];
/*arrive*/ xor.b32 %%c, %%t, 31; mad.lo.u32 %%c, %%c, 16, %%a; mad.wide.u32 %%g, %%t, 8, %%in1;
W%d: mbarrier.test_wait.parity.shared.b64 %%p, [%%a+%d], 0; @!%%p bra W%d; ld.shared.u32 %%b, [%%c+%d]; st.global.u32 [%%g+%d], %%b;
W%d: mbarrier.test_wait.parity.shared.b64 %%p, [%%a+%d], 0; @!%%p bra W%d; ld.shared.u32 %%b, [%%c+%d]; st.global.u32 [%%g+%d], %%b;`,
					count, count, noinc, noinc, first, 1024+8*first, first, 512*first, 4*first, 1-first, 1032-8*first, 1-first, 512-512*first, 4-4*first),
			}
			if noinc == "" {
				p.body = replace(p.body, "/*arrive*/", "bar.warp.sync -1; @%q mbarrier.arrive.shared.b64 %s0, [%a+1024]; @%q mbarrier.arrive.shared.b64 %s1, [%a+1032];")
			}
			in := make([]byte, 1024)
			for i := range 64 {
				in[16*i] = byte(i + 1)
			}
			p.everywhere(t, func(out [][]byte, rep *bench.Report) {
				require.Empty(t, rep.Faults, "%s, %d", noinc, first)
				for i, v := range toWords(out[1]) {
					require.EqualValues(t, 32-i/2+32*(i%2), v)
				}
			}, in, make([]byte, 256))
		}
	}
}
