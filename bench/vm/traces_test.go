package vm

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed"
)

// drawTraces makes up the traces of a line: some rows, some none, some neither.
func drawTraces(t *rapid.T, name string) *lineTraces {
	var line lineTraces
	for at := 0; at < lineWords; {
		n := min(rapid.IntRange(1, 20).Draw(t, name), lineWords-at)
		first := trace(rapid.Uint32().Draw(t, name+" first")) >> 1
		step := rapid.SampledFrom([]int{0, 1, 2, 4, 8, 16, 24, 8 << 9}).Draw(t, name+" step")
		if rapid.Bool().Draw(t, name+" none") {
			first, step = 0, 0
		}
		for i := range n {
			line[at+i] = first + trace(i*step/8)<<traceLane
		}
		at += n
	}
	return &line
}

// drawLine makes up a line as it may be when it was compared.
func drawLine(t *rapid.T, s *shadow) *openLine {
	o := &openLine{s: s, w: *drawTraces(t, "writes"), rival: rapid.Bool().Draw(t, "rival"), parts: rapid.IntRange(0, wordBytes-1).Draw(t, "parts")}
	switch rapid.SampledFrom([]string{"any", "beside", "none"}).Draw(t, "reads") {
	case "any":
		o.r = *drawTraces(t, "reads")
	case "beside":
		d := trace(rapid.IntRange(-2, 2).Draw(t, "records between") * (1 << traceIndex))
		for i, w := range o.w {
			if w != 0 {
				o.r[i] = w + d
			}
		}
	}
	if o.rival {
		o.rivals = *drawTraces(t, "rivals")
	}
	for i := range o.parts {
		o.older[i] = *drawTraces(t, "older")
	}
	return o
}

// What is kept of lines is what was stored last, however often, and where there is room
// for all. Where there is not, the writes are, unless others press, and the rest as it was or
// not at all; and no more memory is taken than there is to be.
func TestShadowsKeepTraces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const lines = 1500
		al := &allocation{addr: globalBase, size: lines * pageLineSize}
		all := &shadows{most: 1 << 30}
		scarce, pressed := rapid.Bool().Draw(t, "scarce"), rapid.IntRange(0, 40).Draw(t, "pressed")
		if scarce {
			all.most = lines * pageLineSize * 3 / 2
		}
		page := &page{al: al}
		want := map[int]*openLine{}
		some := []*openLine{}
		for range 20 {
			some = append(some, drawLine(t, nil))
		}
		for n := range rapid.IntRange(1, 3*lines).Draw(t, "stores") {
			o := *some[n*7%len(some)]
			line := n * 11 % lines
			o.s = all.shadow(page, line)
			if scarce {
				all.press(int64(n * pressed))
			}
			all.store(&o)
			want[line] = &o
		}
		if scarce {
			chunks := arenaChunk * (unsafe.Sizeof(lineTraces{}) + unsafe.Sizeof(moreTraces{}))
			require.LessOrEqual(t, all.size(), max(all.most*9/8-all.pressed, all.rows)+int64(chunks)+lines*pageLineSize/16)
		}
		for line, w := range want {
			var got openLine
			all.open(&got, all.shadow(page, line))
			if got.w != (lineTraces{}) || !scarce || pressed == 0 {
				require.Equal(t, w.w, got.w)
			}
			wanted, rest := kept(w), kept(&got)
			if !scarce {
				require.Equal(t, wanted, rest)
			}
			for _, line := range rest {
				require.Contains(t, wanted, line)
			}
		}
		for i := range al.shadows {
			all.dropFrom(&al.shadows[i])
		}
		require.Zero(t, all.loose)
	})
}

// kept is what a line has beside its writes, without what is none.
func kept(o *openLine) []lineTraces {
	list := []lineTraces{}
	o.each(func(l *lineTraces) {
		if l != &o.w && *l != (lineTraces{}) {
			list = append(list, *l)
		}
	})
	return list
}

// Coalesced accesses take no more than their lines, whatever the lanes' width.
func TestCoalescedTracesAreRows(t *testing.T) {
	for name, lane := range map[string]func(word int) int{
		"halves":  func(w int) int { return 2*w%warpSize + 1 },
		"words":   func(w int) int { return w % warpSize },
		"pairs":   func(w int) int { return w / 2 % warpSize },
		"fours":   func(w int) int { return w / 4 % warpSize },
		"eights":  func(w int) int { return w / 8 % warpSize },
		"one":     func(int) int { return 7 },
		"nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			for at := 0; at < 8*lineWords; at += lineWords {
				var line lineTraces
				for i := range line {
					if w := at + i; lane != nil {
						line[i] = trace(w/warpSize+1)<<traceIndex | trace(lane(w))<<traceLane | bytesOfTrace
					}
				}
				_, ok := line.row()
				require.True(t, ok)
			}
		})
	}
}

// Who reads a word and writes it leaves one difference in a line, whoever they are.
func TestReadsBesideWrites(t *testing.T) {
	var writes, reads lineTraces
	for i := range writes {
		if i != 5 {
			writes[i] = trace(2*i*i+1)<<traceIndex | trace(31-i)<<traceLane | bytesOfTrace
			reads[i] = writes[i] + 1<<traceIndex
		}
	}
	_, row := writes.row()
	require.False(t, row)
	l, ok := reads.beside(&writes)
	require.True(t, ok)
	var back lineTraces
	l.unpackBeside(&back, &writes)
	require.Equal(t, reads, back)
	reads[6] += 1 << traceLane
	_, ok = reads.beside(&writes)
	require.False(t, ok)
}
