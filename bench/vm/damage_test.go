package vm_test

import (
	"bytes"
	"math/rand/v2"
	"strconv"
)

// damage changes a few lines of a program: drops, doubles or swaps them, or
// puts other numbers and registers in.
func damage(src []byte, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	lines := bytes.Split(src, []byte("\n"))
	for range 1 + r.IntN(3) {
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(5) {
		case 0:
			lines[i] = nil
		case 1:
			lines[i], lines[j] = lines[j], lines[i]
		case 2:
			lines[i] = lines[j]
		case 3:
			lines[i] = renumber(lines[i], r)
		default:
			lines[i] = append(append([]byte{}, lines[i]...), lines[j]...)
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

// renumber puts another number in place of one.
func renumber(line []byte, r *rand.Rand) []byte {
	var at []int
	for i, c := range line {
		if c >= '0' && c <= '9' && (i == 0 || line[i-1] < '0' || line[i-1] > '9') {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return line
	}
	i := at[r.IntN(len(at))]
	j := i
	for j < len(line) && line[j] >= '0' && line[j] <= '9' {
		j++
	}
	n := []string{"0", "1", "-1", "4096", "2147483647", strconv.Itoa(r.IntN(40))}[r.IntN(6)]
	out := append([]byte{}, line[:i]...)
	return append(append(out, n...), line[j:]...)
}
