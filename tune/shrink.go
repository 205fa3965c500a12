package tune

import (
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"

	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// The sizes of a small problem: extents of at least longest count as lengths, and
// shrink to something between the two; the rest count things such as sequences and
// heads, and shrink to a few.
const (
	longest        = 65
	shortLo, short = 101, 230
	handful        = 2
)

// shrink finds a small problem that runs the very program of p: its sizes are awkward
// where the program leaves them free, and multiples where it counts on that. Whether
// two problems share a program is asked of the programs, so no family is known here.
func shrink(f *family.Family, p family.Problem, c space.Config, r *rand.Rand) (family.Problem, error) {
	same, err := sameProgram(f, p, c)
	if err != nil {
		return nil, err
	}
	flags := flagsOf(f, p)
	small, ok := same(flags)
	if !ok {
		return nil, errors.New("its flags do not give the problem back")
	}
	// What one size may be depends on others: heads on key heads. Two passes settle it.
	for range 2 {
		for _, flag := range f.Flags {
			now, err := strconv.Atoi(flags[flag.Name])
			if flag.Kind != family.Int || err != nil {
				continue
			}
			for _, n := range smaller(now, r) {
				old := flags[flag.Name]
				flags[flag.Name] = strconv.Itoa(n)
				if q, ok := same(flags); ok {
					small = q
					break
				}
				flags[flag.Name] = old
			}
		}
	}
	for i := range f.Flags {
		for j := range i {
			// Of heads and key heads only the ratio may be the program's.
			x, y := f.Flags[j].Name, f.Flags[i].Name
			m, err1 := strconv.Atoi(flags[x])
			n, err2 := strconv.Atoi(flags[y])
			g := gcd(m, n)
			if err1 != nil || err2 != nil || g <= 1 || max(m, n) >= longest {
				continue
			}
			old := maps.Clone(flags)
			flags[x], flags[y] = strconv.Itoa(m/g), strconv.Itoa(n/g)
			if q, ok := same(flags); ok {
				small = q
			} else {
				flags = old
			}
		}
	}
	return small, nil
}

func gcd(m, n int) int {
	for n != 0 {
		m, n = n, m%n
	}
	return m
}

// halve finds a problem that runs the very program of p and that fits, by halving its
// largest extents; p itself if it does.
func halve(f *family.Family, p family.Problem, c space.Config, fits func(family.Problem) bool) (family.Problem, error) {
	if fits(p) {
		return p, nil
	}
	same, err := sameProgram(f, p, c)
	if err != nil {
		return nil, err
	}
	flags := flagsOf(f, p)
	fixed := map[string]bool{} // flags whose half the program does not serve
	for {
		name, n := "", 1
		for _, flag := range f.Flags {
			v, err := strconv.Atoi(flags[flag.Name])
			if flag.Kind == family.Int && err == nil && v > n && !fixed[flag.Name] {
				name, n = flag.Name, v
			}
		}
		if name == "" {
			return nil, errors.New("no smaller problem runs the same program")
		}
		flags[name] = strconv.Itoa(n / 2)
		q, ok := same(flags)
		if !ok {
			flags[name], fixed[name] = strconv.Itoa(n), true
			continue
		}
		if fits(q) {
			return q, nil
		}
	}
}

// sameProgram returns a function that makes a problem of flags if p's program serves it.
func sameProgram(f *family.Family, p family.Problem, c space.Config) (func(map[string]string) (family.Problem, bool), error) {
	prog, err := p.Program(c)
	if err != nil {
		return nil, err
	}
	want := prog.Hash()
	return func(flags map[string]string) (family.Problem, bool) {
		q, err := f.Problem(flags, nil)
		if err != nil {
			return nil, false
		}
		prog, err := q.Program(c)
		if err != nil || prog.Hash() != want {
			return nil, false
		}
		return q, true
	}, nil
}

// flagsOf is a problem's flags as text.
func flagsOf(f *family.Family, p family.Problem) map[string]string {
	flags := map[string]string{}
	for _, s := range p.Settings() {
		for _, flag := range f.Flags {
			if flag.Name == s.Name {
				flags[s.Name] = s.Value
			}
		}
	}
	return flags
}

// smaller lists what to try in place of an extent, best first: any length, then
// multiples of more and more.
func smaller(now int, r *rand.Rand) []int {
	if now < longest {
		var out []int
		for _, n := range r.Perm(handful) {
			if n+1 < now {
				out = append(out, n+1)
			}
		}
		return out
	}
	if now <= short {
		return nil
	}
	out := []int{shortLo + 2*r.IntN((short-shortLo)/2)}
	for unit := 8; unit <= 128; unit *= 2 {
		lo, hi := (shortLo+unit-1)/unit, short/unit
		out = append(out, unit*(lo+r.IntN(max(1, hi-lo+1))))
	}
	return out
}

func bytesOf(p family.Problem) int64 {
	total := int64(0)
	for _, a := range p.Args() {
		if !a.IsScalar() {
			total += int64(a.Elements()) * int64(a.Elem.MemoryBits()) / 8
		}
	}
	return total
}
